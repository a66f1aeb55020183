//! Ports of the containers of Pods.

use crate::pod::pod;

#[test]
fn of_one_container() {
    pod().warned(&[
        (
            r#"spec.containers[0].ports=[{"containerPort":80,"protocol":"UDP","hostIP":"10.0.0.1"}]"#,
            &["spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:UDP HostIP:10.0.0.1}"],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80},{"containerPort":80,"protocol":"UDP"},{"containerPort":81}]"#,
            &[],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80},{"containerPort":80}]"#,
            &["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80},{"containerPort":80}]"#,
            &["spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80},{"containerPort":80,"hostPort":81}]"#,
            &[],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80},{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.1"}]"#,
            &["spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]"],
        ),
        (
            r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.1"},{"containerPort":80,"hostPort":80,"hostIP":"10.0.0.2"}]"#,
            &[],
        ),
    ]);
}

#[test]
fn of_several_containers() {
    pod().warned(&[
        (
            r#"spec.containers[0].ports=[{"containerPort":80}] ; spec.containers[1].ports=[{"containerPort":80}] ; spec.initContainers[0].ports=[{"containerPort":80}]"#,
            &[
                "spec.containers[0].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]",
                "spec.containers[1].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]",
                "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
            ],
        ),
        (
            r#"spec.containers[0].ports=[{"name":"http","containerPort":80}] ; spec.containers[1].ports=[{"name":"http","containerPort":8080}]"#,
            &[r#"spec.containers[1].ports[0]: duplicate port name "http" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]"#],
        ),
    ]);
}
