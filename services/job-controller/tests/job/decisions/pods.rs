//! What the view of a Pod keeps.

use jiff::Timestamp;
use setpoint_controller::View as _;
use setpoint_job_controller::JobPodView;
use setpoint_proto::core::{
    Container, ContainerStateTerminated, ContainerStatus, Pod, PodCondition,
};

use crate::decisions::cluster::at;

fn ended(name: &str, code: i32, second: i64) -> ContainerStatus {
    let mut container = ContainerStatus {
        name: name.into(),
        restart_count: 2,
        ..Default::default()
    };
    container.state.terminated = Some(ContainerStateTerminated {
        exit_code: code,
        finished_at: at(second).into(),
        ..Default::default()
    });
    container
}

fn end(pod: &Pod) -> Timestamp {
    JobPodView::of(pod.clone()).details().ended
}

#[test]
fn a_pod_ends_with_its_last_container_or_sidecar() {
    let mut pod = Pod::default();
    pod.metadata.creation_timestamp = at(1).into();
    assert_eq!(end(&pod), at(1));
    pod.metadata.deletion_timestamp = Some(at(40).into());
    pod.metadata.deletion_grace_period_seconds = Some(30);
    assert_eq!(end(&pod), at(10));
    pod.status.conditions.push(PodCondition {
        r#type: "Ready".into(),
        status: "False".into(),
        last_transition_time: at(20).into(),
        ..Default::default()
    });
    assert_eq!(end(&pod), at(20));
    pod.status.container_statuses = vec![ended("a", 0, 25), ended("b", 0, 22)];
    pod.status.init_container_statuses = vec![ended("init", 0, 99), ended("sidecar", 0, 28)];
    assert_eq!(end(&pod), at(25));
    pod.spec.init_containers.push(Container {
        name: "sidecar".into(),
        restart_policy: Some("Always".into()),
        ..Default::default()
    });
    assert_eq!(end(&pod), at(28));
    pod.status.container_statuses[1].state.terminated = None;
    assert_eq!(end(&pod), at(20), "a container runs");
}

#[test]
fn exit_codes_of_containers_come_before_those_of_init_containers() {
    let mut pod = Pod::default();
    pod.status.init_container_statuses = vec![ended("init", 3, 1)];
    pod.status.container_statuses = vec![ended("a", 0, 1), ended("b", 2, 1)];
    let view = JobPodView::of(pod);
    assert_eq!(view.details().exits, [("b".into(), 2), ("init".into(), 3)]);
    assert_eq!(view.details().restarts, 6);
}

#[test]
fn malformed_annotations_are_read_as_upstream_reads_them() {
    for (text, index, failures) in [
        ("3", Some(3), 3),
        ("-1", None, 0),
        ("x", None, 0),
        ("9999999999", Some(9_999_999_999), 0),
    ] {
        let mut pod = Pod::default();
        for name in [
            crate::decisions::cluster::INDEX,
            crate::decisions::cluster::FAILURES,
        ] {
            pod.metadata.annotations.insert(name.into(), text.into());
        }
        let view = JobPodView::of(pod);
        assert_eq!(
            (view.details().index, view.details().failures.counted),
            (index, failures),
            "{text}"
        );
    }
}
