//! Fields of Pods about scheduling, and others that apply to all containers.

use crate::pod::pod;

#[test]
fn tolerations() {
    pod()
        .created(&[
            (r#"spec.tolerations=[{"key":"a.io/b","value":"c","effect":"NoSchedule"},{"operator":"Exists"}]"#, ""),
            (r#"spec.tolerations=[{"key":"a","operator":"Equal","value":"b","effect":"NoExecute","tolerationSeconds":-5}]"#, ""),
            (r#"spec.tolerations=[{"key":"foo","operator":"Exists","effect":"NoExecute","tolerationSeconds":60},{"operator":"Exists","effect":"NoSchedule"},{"key":"foo","operator":"Equal","value":"bar"}]"#, ""),
            (r#"spec.tolerations=[{"operator":"Equal","value":"bar","effect":"NoSchedule"}]"#, "Invalid spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","operator":"Lt","value":"950","effect":"NoSchedule"}]"#, "NotSupported spec.tolerations[0].operator"),
            // All errors of a value are one cause.
            (r#"spec.tolerations=[{"key":"a","value":"-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]"#, "Invalid spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a b","operator":"Exists"}]"#, "Invalid spec.tolerations[0].key"),
            (r#"spec.tolerations=[{"value":"a"}]"#, "Invalid spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","operator":"Like"}]"#, "NotSupported spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","operator":"Gt","value":"1"}]"#, "NotSupported spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","operator":"Exists","value":"b"}]"#, "Invalid spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","value":"b c"}]"#, "Invalid spec.tolerations[0].operator"),
            (r#"spec.tolerations=[{"key":"a","effect":"Never"}]"#, "NotSupported spec.tolerations[0].effect"),
            (r#"spec.tolerations=[{"key":"a","effect":"NoSchedule","tolerationSeconds":5}]"#, "Invalid spec.tolerations[0].effect"),
        ]);
}

#[test]
fn node_affinity() {
    pod()
        .created(&[
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a.io/b","operator":"In","values":["c"]}]},{}]}}}"#, ""),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}"#, "Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In"}]}]}}}"#, "Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}]}}}"#, "Forbidden spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Gt","values":["1","2"]}]}]}}}"#, "Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a b","operator":"Like"}]}]}}}"#, "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator, Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["b c"]}]}]}}}"#, "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}]}}}"#, ""),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.uid","operator":"In","values":["1"]}]}]}}}"#, "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["a","b"]}]}]}}}"#, "Required spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values"),
            (r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"Exists","values":["A"]}]}]}}}"#, "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator, Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]"),
            (r#"spec.affinity={"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"In","values":["b c"]}]}}]}}"#, ""),
            (r#"spec.affinity={"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,"preference":{}},{"weight":101,"preference":{}}]}}"#, "Invalid spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight, Invalid spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight"),
        ]);
}

#[test]
fn pod_affinity() {
    pod()
        .created(&[
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"a":"b"}},"namespaces":["a"]}]}}"#, ""),
            // Checks F19.
            (
                r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}}"#,
                "Required spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey, Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey, Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            ),
            (r#"spec.affinity={"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a b"}]}}"#, "Invalid spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}}]}}"#, "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}]}}"#, "Required spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchExpressions[0].values"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}}]}}"#, "Forbidden spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].values"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{"matchLabels":{"a b":"c"}}}]}}"#, "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","namespaces":["A"]}]}}"#, "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","matchLabelKeys":["a"]}]}}"#, "Forbidden spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{},"matchLabelKeys":["a"],"mismatchLabelKeys":["a","b c"]}]}}"#, "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].mismatchLabelKeys[1], Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]"),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k8s.io/zone","labelSelector":{"matchExpressions":[{"key":"key","operator":"NotIn","values":["value1"]},{"key":"key2","operator":"In","values":["value1"]},{"key":"key3","operator":"NotIn","values":["value1"]}]},"matchLabelKeys":["key2"],"mismatchLabelKeys":["key3"]}]}}"#, ""),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k8s.io/zone","labelSelector":{"matchExpressions":[{"key":"key2","operator":"In","values":["value1"]},{"key":"key2","operator":"NotIn","values":["value1"]}]},"mismatchLabelKeys":["key2"]}]}}"#, ""),
            (
                r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k8s.io/zone","labelSelector":{"matchExpressions":[{"key":"key","operator":"In","values":["value1"]},{"key":"key","operator":"NotIn","values":["value2"]}]},"matchLabelKeys":["key"]}]}}"#,
                "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][0]",
            ),
            (r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k8s.io/zone","labelSelector":{},"matchLabelKeys":["/simple"],"mismatchLabelKeys":["/simple"]}]}}"#, "Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0], Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].mismatchLabelKeys[0], Invalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]"),
            (
                r#"spec.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"podAffinityTerm":{"topologyKey":"k8s.io/zone","labelSelector":{"matchExpressions":[{"key":"key","operator":"In","values":["value1"]},{"key":"key","operator":"NotIn","values":["value2"]}]},"matchLabelKeys":["key"]}}]}}"#,
                "Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm[0]",
            ),
            (r#"spec.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"podAffinityTerm":{"topologyKey":"k8s.io/zone","labelSelector":{},"matchLabelKeys":["same","/simple"],"mismatchLabelKeys":["same"]}}]}}"#, "Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.matchLabelKeys[1], Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.matchLabelKeys[0]"),
            (r#"spec.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"podAffinityTerm":{"topologyKey":"region","namespaces":["INVALID_NAMESPACE"],"namespaceSelector":{"matchExpressions":[{"key":"key2","operator":"Exists","values":["value1"]}]}}}]}}"#, "Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespace, Forbidden spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.namespaceSelector.matchExpressions[0].values"),
            (r#"spec.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"podAffinityTerm":{"namespaces":["ns"]}}]}}"#, "Required spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey, Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey, Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey"),
            (r#"spec.affinity={"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":101,"podAffinityTerm":{"topologyKey":"a"}}]}}"#, "Invalid spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"),
            (r#"spec.affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"a","labelSelector":{"matchLabels":{"a":"b c"}}}}]}}"#, "Invalid spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector.matchLabels"),
        ]);
}

#[test]
fn spreading() {
    pod()
        .created(&[
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"},{"maxSkew":2,"topologyKey":"a","whenUnsatisfiable":"ScheduleAnyway"}]"#, ""),
            (r#"spec.topologySpreadConstraints=[{"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}]"#, "Invalid spec.topologySpreadConstraints[0].maxSkew"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":-1,"topologyKey":"a","whenUnsatisfiable":"N/A"}]"#, "Invalid spec.topologySpreadConstraints[0].maxSkew, NotSupported spec.topologySpreadConstraints[0].whenUnsatisfiable"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"k8s.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,"nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore"}]"#, ""),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"ScheduleAnyway","minDomains":-1,"nodeAffinityPolicy":"Unknown"}]"#, "Invalid spec.topologySpreadConstraints[0].minDomains, Invalid spec.topologySpreadConstraints[0].minDomains, NotSupported spec.topologySpreadConstraints[0].nodeAffinityPolicy"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{},"matchLabelKeys":["/simple"]}]"#, "Invalid spec.topologySpreadConstraints[0].matchLabelKeys[0]"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["value1"]}]},"matchLabelKeys":["foo"]}]"#, ""),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchExpressions":[{"key":"foo","operator":"NotIn","values":["value1"]},{"key":"foo","operator":"NotIn","values":["value2"]}]},"matchLabelKeys":["foo"]}]"#, "Invalid spec.topologySpreadConstraints[0][0]"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"NoUppercaseOrSpecialCharsLike=Equals":"foo"}}}]"#, "Invalid spec.topologySpreadConstraints[0].labelSelector.matchLabels"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]"#, "Required spec.topologySpreadConstraints[0].topologyKey"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a"}]"#, "NotSupported spec.topologySpreadConstraints[0].whenUnsatisfiable"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"},{"maxSkew":2,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}]"#, "Duplicate spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","minDomains":0}]"#, "Invalid spec.topologySpreadConstraints[0].minDomains"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"ScheduleAnyway","minDomains":1}]"#, "Invalid spec.topologySpreadConstraints[0].minDomains"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Maybe"}]"#, "NotSupported spec.topologySpreadConstraints[0].nodeTaintsPolicy"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","matchLabelKeys":["a"]}]"#, "Forbidden spec.topologySpreadConstraints[0].matchLabelKeys"),
            (r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}}]"#, "Invalid spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator"),
        ]);
}

#[test]
fn names_and_times() {
    pod()
        .created(&[
            (r#"spec.nodeName="node-1" ; spec.hostname="a" ; spec.subdomain="b""#, ""),
            (r#"spec.nodeName="Node_1""#, "Invalid spec.nodeName"),
            (r#"spec.hostname="a.b""#, "Invalid spec.hostname"),
            (r#"spec.subdomain="a_b""#, "Invalid spec.subdomain"),
            (r#"spec.hostnameOverride="a.b""#, ""),
            (r#"spec.hostnameOverride="A""#, "Invalid spec.hostnameOverride"),
            (r#"spec.hostnameOverride="a" ; spec.setHostnameAsFQDN=true"#, "Forbidden spec.hostnameOverride"),
            (r#"spec.hostnameOverride="a" ; spec.hostNetwork=true"#, "Forbidden spec.hostnameOverride"),
            (r#"spec.nodeSelector={"a b":"c"}"#, "Invalid spec.nodeSelector"),
            (r#"spec.hostAliases=[{"ip":"1.2.3.4","hostnames":["a.b"]}]"#, ""),
            (r#"spec.hostAliases=[{"ip":"1.2.3","hostnames":["a b"]}]"#, "Invalid spec.hostAliases[0].ip, Invalid spec.hostAliases[0].hostnames[0]"),
            ("spec.activeDeadlineSeconds=1", ""),
            ("spec.activeDeadlineSeconds=0", "Invalid spec.activeDeadlineSeconds"),
            ("spec.activeDeadlineSeconds=2147483648", "Invalid spec.activeDeadlineSeconds"),
            // Checks F1: as in Kubernetes, grace periods have no upper limit.
            ("spec.terminationGracePeriodSeconds=9223372036854775807", ""),
            // Checks K11.
            ("spec.terminationGracePeriodSeconds=-1", ""),
            (r#"spec.dnsPolicy="Often""#, "NotSupported spec.dnsPolicy"),
            (r#"spec.dnsPolicy="None""#, "Required spec.dnsConfig"),
            (r#"spec.dnsPolicy="None" ; spec.dnsConfig={}"#, "Required spec.dnsConfig.nameservers"),
            (r#"spec.dnsConfig={"nameservers":["1.2.3.4","::1"],"searches":["a_b.c.","."],"options":[{"name":"ndots"}]}"#, ""),
            (r#"spec.dnsConfig={"nameservers":["1.2.3.4","1.2.3.5","1.2.3.6","1.2.3.7"]}"#, "Invalid spec.dnsConfig.nameservers"),
            (r#"spec.dnsConfig={"nameservers":["a"],"searches":["a b"],"options":[{}]}"#, "Invalid spec.dnsConfig.nameservers[0], Invalid spec.dnsConfig.searches[0], Required spec.dnsConfig.options[0]"),
            (r#"spec.dnsConfig={"nameservers":["FE80::0202:B3FF:FE1E:8329"],"searches":["custom."],"options":[{"name":"ndots","value":"2"}]}"#, ""),
            (r#"spec.dnsConfig={"nameservers":["001.002.003.004"],"searches":["custom?"]}"#, "Invalid spec.dnsConfig.nameservers[0], Invalid spec.dnsConfig.searches[0]"),
            (r#"spec.dnsConfig={"searches":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19","20","21","22","23","24","25","26","27","28","29","30","31","32"]}"#, ""),
            (r#"spec.dnsConfig={"searches":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19","20","21","22","23","24","25","26","27","28","29","30","31","32","33"]}"#, "Invalid spec.dnsConfig.searches"),
            (r#"spec.dnsConfig={"searches":["_sip._tcp.abc_d.example.com","example.com","."]}"#, ""),
            (
                r#"spec.dnsConfig={"searches":["..","_.","-.","__.",".__","._","____________","☃.example.com"]}"#,
                "Invalid spec.dnsConfig.searches[0], Invalid spec.dnsConfig.searches[1], Invalid spec.dnsConfig.searches[2], Invalid spec.dnsConfig.searches[3], Invalid spec.dnsConfig.searches[4], Invalid spec.dnsConfig.searches[5], Invalid spec.dnsConfig.searches[6], Invalid spec.dnsConfig.searches[7]",
            ),
            (r#"spec.dnsPolicy="None" ; spec.dnsConfig={"nameservers":["127.0.0.1"]}"#, ""),
            (r#"spec.dnsPolicy="None" ; spec.dnsConfig={"searches":["custom"]}"#, "Required spec.dnsConfig.nameservers"),
            (r#"spec.hostnameOverride="""#, "Invalid spec.hostnameOverride"),
            (r#"spec.hostnameOverride="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.a""#, "TooLong spec.hostnameOverride"),
            (r#"spec.hostnameOverride="custom-host" ; spec.setHostnameAsFQDN=false"#, ""),
            (r#"spec.hostAliases=[{"ip":"12.34.56.78","hostnames":["host1.foo","host2.bar"]}] ; spec.hostNetwork=true"#, ""),
            (r#"spec.hostAliases=[{"ip":"999.999.999.999","hostnames":["host1"]},{"ip":"001.002.003.004","hostnames":["host1"]}]"#, "Invalid spec.hostAliases[0].ip, Invalid spec.hostAliases[1].ip"),
            (r#"spec.nodeName="node name""#, "Invalid spec.nodeName"),
            (r#"spec.readinessGates=[{"conditionType":"invalid/condition/type"}]"#, "Invalid spec.readinessGates[0].conditionType"),
            (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"008"}"#, "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"),
            (r#"metadata.annotations={"kubernetes.io/config.mirror":""}"#, "Invalid metadata.annotations[kubernetes.io/config.mirror]"),
            (r#"spec.readinessGates=[{"conditionType":"a.io/b"}]"#, ""),
            (r#"spec.readinessGates=[{"conditionType":"a b"}]"#, "Invalid spec.readinessGates[0].conditionType"),
            (r#"spec.os={"name":"linux"}"#, ""),
            (r#"spec.os={}"#, "Required spec.os.name"),
            (r#"spec.os={"name":"plan9"}"#, "NotSupported spec.os"),
            (r#"spec.resourceClaims=[{"name":"a","resourceClaimName":"b"}] ; spec.containers[0].resources={"claims":[{"name":"a"}]}"#, ""),
            (r#"spec.resourceClaims=[{"name":"a"}]"#, "Invalid spec.resourceClaims[0]"),
            (r#"spec.resourceClaims=[{"name":"a","resourceClaimName":"b"},{"name":"a","resourceClaimName":"b"}]"#, "Duplicate spec.resourceClaims[1].name"),
            (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"-10"}"#, ""),
            // Checks F19.
            (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"x"}"#, "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"),
            (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"+5"}"#, "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"),
            (r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"2147483648"}"#, "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"),
            (r#"metadata.annotations={"kubernetes.io/config.mirror":"a"}"#, "Invalid metadata.annotations[kubernetes.io/config.mirror]"),
        ]);
}

#[test]
fn gates() {
    pod()
        .created(&[
            (r#"spec.schedulingGates=[{"name":"a.io/b"}]"#, ""),
            (
                r#"spec.schedulingGates=[{"name":"a b"}]"#,
                "Invalid spec.schedulingGates[0]",
            ),
            (
                r#"spec.schedulingGates=[{"name":"a"},{"name":"a"}]"#,
                "Duplicate spec.schedulingGates[1]",
            ),
            (
                r#"spec.schedulingGates=[{"name":"foo"},{"name":""},{"name":"\nbar"}]"#,
                "Invalid spec.schedulingGates[1], Invalid spec.schedulingGates[1], Invalid spec.schedulingGates[2]",
            ),
            (
                r#"spec.schedulingGates=[{"name":"foo"},{"name":"bar"},{"name":"foo"},{"name":"baz"},{"name":"foo"},{"name":"bar"}]"#,
                "Duplicate spec.schedulingGates[2], Duplicate spec.schedulingGates[4], Duplicate spec.schedulingGates[5]",
            ),
            // Checks F19.
            (
                r#"spec.schedulingGates=[{"name":"a"}] ; spec.nodeName="node-1""#,
                "Forbidden spec.nodeName",
            ),
        ]);
}

#[test]
fn changes() {
    let gated = r#"spec.schedulingGates=[{"name":"a"},{"name":"b"}] ; spec.nodeSelector={"a":"b"}"#;
    pod()
        .updated(&[
            ("", r#"spec.containers[0].image="nginx:2""#, ""),
            ("", r#"spec.initContainers[0].image="nginx:2""#, ""),
            ("", r#"spec.containers[0].image="""#, "Required spec.containers[0].image"),
            ("", r#"spec.containers[2]={"name":"c","image":"d"}"#, "Forbidden spec.containers"),
            ("", "spec.initContainers=[]", "Forbidden spec.initContainers"),
            ("", r#"spec.containers[0].command=["a"]"#, "Forbidden spec"),
            ("", r#"spec.nodeName="node-2""#, "Forbidden spec"),
            ("", r#"spec.containers[0].resources={"limits":{"cpu":"1"}}"#, "Forbidden spec"),
            ("", "spec.terminationGracePeriodSeconds=10", "Forbidden spec"),
            ("", "spec.activeDeadlineSeconds=5", ""),
            ("spec.activeDeadlineSeconds=5", "spec.activeDeadlineSeconds=4", ""),
            ("spec.activeDeadlineSeconds=5", "spec.activeDeadlineSeconds=6", "Invalid spec.activeDeadlineSeconds"),
            ("spec.activeDeadlineSeconds=5", "spec.activeDeadlineSeconds=null", "Invalid spec.activeDeadlineSeconds"),
            ("", r#"spec.tolerations=[{"key":"a","operator":"Exists"}]"#, ""),
            (r#"spec.tolerations=[{"key":"a","effect":"NoExecute","tolerationSeconds":5}]"#, "spec.tolerations[0].tolerationSeconds=6", ""),
            (r#"spec.tolerations=[{"key":"a"}]"#, "spec.tolerations=[]", "Forbidden spec.tolerations"),
            (r#"spec.tolerations=[{"key":"a"}]"#, r#"spec.tolerations[0].value="b""#, "Forbidden spec.tolerations"),
            (gated, r#"spec.schedulingGates=[{"name":"b"}]"#, ""),
            (gated, r#"spec.schedulingGates[2]={"name":"c"}"#, "Forbidden spec.schedulingGates[2].name"),
            ("", r#"spec.schedulingGates=[{"name":"c"}]"#, "Forbidden spec.schedulingGates[0].name"),
            (gated, r#"spec.nodeSelector={"a":"b","c":"d"}"#, ""),
            (gated, r#"spec.nodeSelector={"c":"d"}"#, "Invalid spec.nodeSelector"),
            ("", r#"spec.nodeSelector={"c":"d"}"#, "Forbidden spec"),
            (gated, r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#, ""),
            (
                r#"spec.schedulingGates=[{"name":"a"}] ; spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1]={"key":"b","operator":"Exists"}"#,
                "",
            ),
            (
                r#"spec.schedulingGates=[{"name":"a"}] ; spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key="b""#,
                "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
            ),
            (
                r#"spec.schedulingGates=[{"name":"a"}] ; spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#,
                "spec.affinity=null",
                "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            ),
            (gated, r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}"#, "Forbidden spec"),
            ("", r#"metadata.annotations={"kubernetes.io/config.mirror":"a"}"#, "Forbidden metadata.annotations[kubernetes.io/config.mirror], Invalid metadata.annotations[kubernetes.io/config.mirror]"),
            ("", r#"metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"x"}"#, "Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"),
            ("", r#"metadata.labels={"a":"b"}"#, ""),
        ]);
}
