//! Pods with users of their own, which takes a runtime and a kernel that have user namespaces: other runtimes refuse
//! them, and Debian's containerd 1.6 is one of these.

use std::time::Duration;

use setpoint_runtime::contract::{ALL_OUTPUT, Fixture, Woken, container, sandbox_with, uid};
use setpoint_runtime::cri::{Cri, Service};
use setpoint_runtime::{Error, LogOptions, Mount, Runtime as _, SandboxConfig, VolumeKind};

use super::fixture::{Containerd, open};

/// Returns a Pod with users of its own, and a volume.
fn config(name: &str, uid: &str) -> SandboxConfig {
    SandboxConfig {
        own_users: true,
        uid: uid.into(),
        name: name.into(),
        ..sandbox_with([("data", VolumeKind::Empty)])
    }
}

fn first_user(runtime: &Cri, config: &SandboxConfig) -> Option<u32> {
    runtime.sandboxes(&config.pod())[0].config.first_user
}

#[tokio::test]
async fn a_pod_has_users_that_are_nobody_on_its_node_or_is_refused() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let service = Service::connect(&containerd.settings()).await.unwrap();
    let mut handlers = service.features.handlers.iter();
    let can = handlers.any(|handler| handler.name.is_empty() && handler.user_namespaces);
    let runtime = open(&containerd, &Woken::default()).await;
    let one = config("web", &uid());
    let other = config("other", &format!("{}-2", uid()));
    let ran = runtime.run_sandbox(one.clone()).await;
    if !can {
        let message = "can't set `spec.hostUsers: false`, runtime does not support user namespaces";
        assert!(
            matches!(&ran, Err(Error::Config(why)) if why == message),
            "{ran:?}"
        );
        assert!(runtime.sandboxes(&one.pod()).is_empty());
        return;
    }
    ran.unwrap();
    assert_eq!(first_user(&runtime, &one), Some(65_536));
    drop(runtime);
    // An agent that starts again knows which are taken.
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    assert_eq!(first_user(&runtime, &one), Some(65_536));
    runtime.run_sandbox(other.clone()).await.unwrap();
    assert_eq!(first_user(&runtime, &other), Some(131_072));
    runtime.remove_sandbox(&other.uid).await.unwrap();
    let fixture = Fixture::new(runtime, crate::MACHINE, woken, containerd);
    let script = "read -r inside outside count </proc/self/uid_map; echo $inside $outside $count; \
        echo text >/data/file; busybox stat -c '%u %g' /data/file /etc/hosts; sleep 1000";
    let mut main = container(0, &["sh", "-c", script]);
    main.mounts = vec![Mount {
        volume: "data".into(),
        path: "/data".into(),
        ..Mount::default()
    }];
    fixture.runtime.start(main).await.unwrap();
    fixture.running(0).await;
    let (seen, _, code) = fixture.run(&["busybox", "id", "-u"], ALL_OUTPUT, &[]).await;
    assert_eq!((seen.as_str(), code), ("0\n", 0));
    let mut log = String::new();
    for _ in 0..100 {
        log = fixture.log(0, LogOptions::default()).await;
        if log.lines().count() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(log, "0 65536 65536\n0 0\n0 0\n");
    fixture.clean_up().await;
}
