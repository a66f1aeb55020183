//! Fields of Pods for one operating system, and security profiles.

use crate::pod::pod;

#[test]
fn fields_of_the_other_system() {
    pod()
        .created(&[
            (r#"spec.os={"name":"linux"} ; spec.securityContext={"seLinuxOptions":{"user":"user","role":"role","type":"type","level":"level"},"runAsUser":1}"#, ""),
            (r#"spec.os={"name":"linux"} ; spec.containers[0].securityContext={"privileged":false,"capabilities":{"add":["foo"],"drop":["bar"]},"seLinuxOptions":{"user":"user"},"runAsUser":1}"#, ""),
            (
                r#"spec.os={"name":"linux"} ; spec.securityContext={"windowsOptions":{"runAsUserName":"myUser"}} ; spec.initContainers[0].securityContext={"windowsOptions":{"runAsUserName":"myUser"}}"#,
                "Forbidden spec.securityContext.windowsOptions, Forbidden spec.initContainers[0].securityContext.windowsOptions",
            ),
            (r#"spec.os={"name":"windows"} ; spec.securityContext={"windowsOptions":{"runAsUserName":"dummy"}} ; spec.containers[0].securityContext={"windowsOptions":{"runAsUserName":"dummy"}}"#, ""),
            (
                r#"spec.os={"name":"windows"} ; spec.hostUsers=false ; spec.hostPID=true ; spec.shareProcessNamespace=false"#,
                "Forbidden spec.HostPID, Forbidden spec.hostUsers, Forbidden spec.hostPID, Forbidden spec.shareProcessNamespace",
            ),
            (r#"spec.os={"name":"windows"} ; spec.hostIPC=true"#, "Forbidden spec.hostIPC"),
            (
                r#"spec.os={"name":"windows"} ; spec.securityContext={"appArmorProfile":{"type":"Unconfined"},"seLinuxOptions":{"role":"dummyRole"},"seccompProfile":{"type":"Unconfined"},"fsGroup":1,"fsGroupChangePolicy":"Always"}"#,
                "Forbidden spec.securityContext.appArmorProfile, Forbidden spec.securityContext.seLinuxOptions, Forbidden spec.securityContext.seccompProfile, Forbidden spec.securityContext.fsGroup, Forbidden spec.securityContext.fsGroupChangePolicy",
            ),
            (
                r#"spec.os={"name":"windows"} ; spec.securityContext={"sysctls":[{"name":"a","value":"b"}],"runAsUser":1,"runAsGroup":1,"supplementalGroups":[1],"supplementalGroupsPolicy":"Strict","seLinuxChangePolicy":"Recursive"}"#,
                "Forbidden spec.securityContext.sysctls, Forbidden spec.securityContext.runAsUser, Forbidden spec.securityContext.runAsGroup, Forbidden spec.securityContext.supplementalGroups, Forbidden spec.securityContext.supplementalGroupsPolicy, Forbidden spec.securityContext.seLinuxChangePolicy",
            ),
            (
                r#"spec.os={"name":"windows"} ; spec.containers[0].securityContext={"appArmorProfile":{"type":"RuntimeDefault"},"seLinuxOptions":{"role":"dummy"},"seccompProfile":{"type":"Unconfined"},"capabilities":{},"readOnlyRootFilesystem":true}"#,
                "Forbidden spec.containers[0].securityContext.appArmorProfile, Forbidden spec.containers[0].securityContext.seLinuxOptions, Forbidden spec.containers[0].securityContext.seccompProfile, Forbidden spec.containers[0].securityContext.capabilities, Forbidden spec.containers[0].securityContext.readOnlyRootFilesystem",
            ),
            (
                r#"spec.os={"name":"windows"} ; spec.containers[0].securityContext={"privileged":false,"allowPrivilegeEscalation":false,"procMount":"Default","runAsUser":1,"runAsGroup":1}"#,
                "Forbidden spec.containers[0].securityContext.privileged, Forbidden spec.containers[0].securityContext.allowPrivilegeEscalation, Forbidden spec.containers[0].securityContext.procMount, Forbidden spec.containers[0].securityContext.runAsUser, Forbidden spec.containers[0].securityContext.runAsGroup",
            ),
            (r#"spec.os={"name":"windows"} ; spec.containers[0].lifecycle={"stopSignal":"SIGKILL"}"#, ""),
            (r#"spec.os={"name":"linux"} ; spec.containers[0].lifecycle={"stopSignal":"SIGHUP"}"#, ""),
            (r#"spec.os={"name":"windows"} ; spec.resources={"limits":{"cpu":"100m"}}"#, "Forbidden spec.resources"),
        ]);
}

#[test]
fn windows_options() {
    let user = "Invalid spec.securityContext.windowsOptions.runAsUserName";
    pod()
        .created(&[
            (r#"spec.securityContext={"windowsOptions":{}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"gmsaCredentialSpecName":"dummy-gmsa-crep-spec-name","gmsaCredentialSpec":"dummy-gmsa-crep-spec-contents"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"gmsaCredentialSpecName":"not_a-valid-gmsa-crep-spec-name"}}"#, "Invalid spec.securityContext.windowsOptions.gmsaCredentialSpecName"),
            (r#"spec.containers[0].securityContext={"windowsOptions":{"gmsaCredentialSpec":""}}"#, "Invalid spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec"),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Container. User"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Network Service\\Container. User"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"fOofOofOofOofOofOofOofOofOofOofOofOofOofOofOofOo.liSH\\Container. User"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"fOofOofOofOofOofOofOofOofOofOofOofOofOofOofOofOo.l\\Container. User"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\Container. User"}}"#, ""),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":""}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Container\tUser"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Container\\Foo\\Lish"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"\\User"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Container\\"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"NetBios aaaaaaaa\\user"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"... ..."}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":".FooLish\\User"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Foo? Lish?\\User"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com-\\user"}}"#, user),
            (r#"spec.securityContext={"windowsOptions":{"runAsUserName":"Container/User"}}"#, user),
        ]);
    let labels = format!("{}.", "a".repeat(63)).repeat(4);
    for (field, value) in [
        ("gmsaCredentialSpec", "a".repeat((64 << 10) + 1)),
        ("runAsUserName", "a".repeat(105)),
        ("runAsUserName", format!("{}.com\\user", &labels[..253])),
    ] {
        let mut long = pod();
        long.object["spec"]["securityContext"]["windowsOptions"][field] = value.into();
        let expected = match field {
            "runAsUserName" => user,
            _ => "Invalid spec.securityContext.windowsOptions.gmsaCredentialSpec",
        };
        long.created(&[("", expected)]);
    }
}

#[test]
fn host_processes() {
    let all = "Invalid spec";
    let own = "Invalid spec.containers[0].securityContext.windowsOptions.hostProcess";
    pod()
        .created(&[
            (r#"spec.securityContext={"windowsOptions":{"hostProcess":true}}"#, "Invalid spec.hostNetwork"),
            (r#"spec.hostNetwork=true ; spec.securityContext={"windowsOptions":{"hostProcess":true}}"#, ""),
            (r#"spec.hostNetwork=true ; spec.securityContext={"windowsOptions":{"hostProcess":true}} ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":true}}"#, ""),
            (r#"spec.hostNetwork=true ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":true}} ; spec.containers[1].securityContext={"windowsOptions":{"hostProcess":true}} ; spec.initContainers[0].securityContext={"windowsOptions":{"hostProcess":true}}"#, ""),
            (r#"spec.hostNetwork=true ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":true}} ; spec.initContainers[0].securityContext={"windowsOptions":{"hostProcess":false}}"#, all),
            (r#"spec.hostNetwork=true ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":true}}"#, all),
            (
                r#"spec.hostNetwork=true ; spec.securityContext={"windowsOptions":{"hostProcess":true}} ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":false}}"#,
                "Invalid spec, Invalid spec.containers[0].securityContext.windowsOptions.hostProcess",
            ),
            (
                r#"spec.hostNetwork=true ; spec.securityContext={"windowsOptions":{"hostProcess":false}} ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":true}}"#,
                "Invalid spec, Invalid spec.containers[0].securityContext.windowsOptions.hostProcess",
            ),
            (r#"spec.securityContext={"windowsOptions":{"hostProcess":true}} ; spec.containers[0].securityContext={"windowsOptions":{"hostProcess":false}} ; spec.containers[1].securityContext={"windowsOptions":{"hostProcess":false}} ; spec.initContainers=[]"#, "Invalid spec.containers[0].securityContext.windowsOptions.hostProcess, Invalid spec.containers[1].securityContext.windowsOptions.hostProcess"),
            (r#"spec.containers=[{"name":"a","image":"b","securityContext":{"windowsOptions":{"hostProcess":false}}}] ; spec.initContainers=[] ; spec.securityContext={"windowsOptions":{"hostProcess":true}}"#, own),
        ]);
}

#[test]
fn seccomp_annotations() {
    let r#type = "Forbidden spec.securityContext.seccompProfile.type";
    let own = "Forbidden spec.containers[0].securityContext.seccompProfile.type";
    pod()
        .created(&[
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/foo"}"#, ""),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/foo":"localhost/foo"}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"foo"}"#, "Invalid metadata.annotations.seccomp.security.alpha.kubernetes.io/pod"),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/foo":"foo"}"#, "Invalid metadata.annotations.container.seccomp.security.alpha.kubernetes.io/foo"),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/foo":""}"#, "Invalid metadata.annotations.container.seccomp.security.alpha.kubernetes.io/foo"),
            (
                r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/":"foo"}"#,
                "Invalid metadata.annotations, Invalid metadata.annotations, Invalid metadata.annotations.container.seccomp.security.alpha.kubernetes.io/",
            ),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost//foo"}"#, "Invalid metadata.annotations.seccomp.security.alpha.kubernetes.io/pod"),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/../foo"}"#, "Invalid metadata.annotations.seccomp.security.alpha.kubernetes.io/pod"),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined"} ; spec.securityContext={"seccompProfile":{"type":"Unconfined"}}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"} ; spec.securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"docker/default"} ; spec.securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/test.json"} ; spec.securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"test.json"}}"#, ""),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined"} ; spec.securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, r#type),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"} ; spec.securityContext={"seccompProfile":{"type":"Unconfined"}}"#, r#type),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/test.json"} ; spec.securityContext={"seccompProfile":{"type":"Unconfined"}}"#, r#type),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/test.json"} ; spec.securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, r#type),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined"} ; spec.securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"test"}}"#, r#type),
            (
                r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/test.json"} ; spec.securityContext={"seccompProfile":{"type":"Localhost"}}"#,
                "Required spec.securityContext.seccompProfile.localhostProfile, Forbidden spec.securityContext.seccompProfile.localhostProfile",
            ),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/not-matching"} ; spec.securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"test"}}"#, "Forbidden spec.securityContext.seccompProfile.localhostProfile"),
            (r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"localhost/anyprofile"} ; spec.securityContext={"seccompProfile":{"type":"Abc"}}"#, "NotSupported spec.securityContext.seccompProfile.type"),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/web":"runtime/default"} ; spec.containers[0].securityContext={"seccompProfile":{"type":"Unconfined"}}"#, own),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/web":"unconfined"} ; spec.containers[0].securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, own),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/web":"unconfined"} ; spec.containers[0].securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"test"}}"#, own),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/web":"localhost/not-matching"} ; spec.containers[0].securityContext={"seccompProfile":{"type":"Localhost","localhostProfile":"test"}}"#, "Forbidden spec.containers[0].securityContext.seccompProfile.localhostProfile"),
            (r#"metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/log":"unconfined"} ; spec.containers[0].securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#, ""),
        ]);
}

#[test]
fn app_armor_annotations() {
    pod()
        .created(&[
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default"}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/init":"runtime/default"}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost/foo"}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost//usr/sbin/ntpd"}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"unconfined"}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":""}"#, ""),
            (
                r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default","container.apparmor.security.beta.kubernetes.io/fake-ctr":"runtime/default"}"#,
                "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/fake-ctr]",
            ),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"bad-name"}"#, "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]"),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/foo"}"#, "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]"),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost/foo"} ; spec.containers[0].securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"foo"}}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost/foo"} ; spec.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"foo"}}"#, ""),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default"} ; spec.containers[0].securityContext={"appArmorProfile":{"type":"Unconfined"}}"#, "Forbidden spec.containers[0].securityContext.appArmorProfile.type"),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default"} ; spec.securityContext={"appArmorProfile":{"type":"Unconfined"}}"#, "Forbidden spec.containers[0].securityContext.appArmorProfile.type"),
            (r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost/foo"} ; spec.containers[0].securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"bar"}}"#, "Forbidden spec.containers[0].securityContext.appArmorProfile.localhostProfile"),
            (r#"spec.securityContext={"appArmorProfile":{"type":"test"}}"#, "NotSupported spec.securityContext.appArmorProfile.type"),
            (r#"spec.containers[0].securityContext={"appArmorProfile":{"type":"test"}}"#, "NotSupported spec.containers[0].securityContext.appArmorProfile.type"),
            (r#"spec.securityContext={"appArmorProfile":{"type":""}}"#, "Required spec.securityContext.appArmorProfile.type"),
            (r#"spec.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":""}}"#, "Required spec.securityContext.appArmorProfile.localhostProfile"),
            (r#"spec.securityContext={"appArmorProfile":{"type":"Localhost","localhostProfile":"example-org/application-foo"}}"#, ""),
            (r#"spec.securityContext={"appArmorProfile":{"type":"RuntimeDefault"}}"#, ""),
        ]);
    let mut long = pod();
    long.object["spec"]["securityContext"]["appArmorProfile"] =
        serde_json::json!({"type": "Localhost", "localhostProfile": "a".repeat(4096)});
    let expected = "TooLong spec.securityContext.appArmorProfile.localhostProfile";
    long.created(&[("", expected)]);
    let web = r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default"}"#;
    let forbidden =
        "Forbidden metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]";
    pod()
        .updated(&[
            ("", web, forbidden),
            (web, "metadata.annotations=null", forbidden),
            (
                web,
                r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"unconfined"}"#,
                forbidden,
            ),
            (web, r#"metadata.annotations["a"]="b""#, ""),
        ]);
}
