//! Services.

use serde_json::json;

use crate::table::Base;

fn service() -> Base {
    Base {
        resource: "services",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"app": "web"}},
        }),
    }
}

#[test]
fn names_types_and_selectors() {
    service()
        .created(&[
            ("", ""),
            (r#"metadata.name="1a""#, ""),
            (r#"metadata.name="a.b""#, "Invalid metadata.name"),
            (r#"spec.type="NodePort""#, ""),
            (r#"spec.type="LoadBalancer""#, ""),
            (r#"spec.type="Balancer""#, "NotSupported spec.type"),
            (r#"spec.selector={"a b":"c"}"#, "Invalid spec.selector"),
            ("spec.selector=null", ""),
            (r#"metadata.name="-123""#, "Invalid metadata.name"),
            (r#"metadata.name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, "Invalid metadata.name"),
            (r#"metadata.generateName="-123""#, "Invalid metadata.generateName"),
            (r#"metadata.generateName="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#, "Invalid metadata.generateName"),
            (r#"metadata.namespace="-123""#, "BadRequest"),
            (r#"spec.type="ExternalName" ; spec.externalName="-123""#, "Invalid spec.externalName"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.internalTrafficPolicy="Cluster""#, ""),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.externalTrafficPolicy="Local""#, "Invalid spec.externalTrafficPolicy"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.loadBalancerClass="a.io/b""#, "Forbidden spec.loadBalancerClass"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b.""#, ""),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.ports=[]"#, ""),
            (r#"spec.type="ExternalName""#, "Required spec.externalName"),
            (r#"spec.type="ExternalName" ; spec.externalName="a b""#, "Invalid spec.externalName"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b..""#, "Invalid spec.externalName"),
            // Checks K6.
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="10.96.0.7""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="None""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.ipFamilies=["IPv4"] ; spec.ipFamilyPolicy="SingleStack""#, "Forbidden spec.ipFamilies, Forbidden spec.ipFamilyPolicy"),
        ]);
}

#[test]
fn ports() {
    service()
        .created(&[
            ("spec.ports=[]", "Required spec.ports"),
            (r#"spec.ports=[] ; spec.clusterIP="None""#, ""),
            ("spec.ports[0].name=null", ""),
            (r#"spec.ports[0].name="a.b""#, "Invalid spec.ports[0].name"),
            (r#"spec.ports[0].name="INVALID""#, "Invalid spec.ports[0].name"),
            ("spec.ports[0].port=0", "Invalid spec.ports[0].port, Invalid spec.ports[0].targetPort"),
            ("spec.ports[0].port=65536 ; spec.ports[0].targetPort=80", "Invalid spec.ports[0].port"),
            (r#"spec.ports[0].protocol="ICMP""#, "NotSupported spec.ports[0].protocol"),
            ("spec.ports[0].targetPort=65536", "Invalid spec.ports[0].targetPort"),
            (r#"spec.ports[0].targetPort="http""#, ""),
            (r#"spec.ports[0].targetPort="a_b""#, "Invalid spec.ports[0].targetPort"),
            (r#"spec.ports[0].appProtocol="a.io/b""#, ""),
            (r#"spec.ports[0].appProtocol="a b""#, "Invalid spec.ports[0].appProtocol"),
            (r#"spec.ports[1]={"port":81}"#, "Required spec.ports[1].name"),
            (r#"spec.ports[1]={"port":81,"name":"http"}"#, "Duplicate spec.ports[1].name"),
            (r#"spec.ports[1]={"port":80,"name":"b"}"#, "Duplicate spec.ports[1]"),
            (r#"spec.ports[1]={"port":80,"name":"b","protocol":"UDP"}"#, ""),
            ("spec.ports[0].nodePort=30080", "Forbidden spec.ports[0].nodePort"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#, ""),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080 ; spec.ports[1]={"port":81,"name":"b","nodePort":30080}"#, "Duplicate spec.ports[1].nodePort"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080 ; spec.ports[1]={"port":81,"name":"b","nodePort":30080,"protocol":"UDP"}"#, ""),
            (r#"spec.ports[0].name=null ; spec.ports[1]={"port":81,"name":"b"}"#, "Required spec.ports[0].name"),
            (r#"spec.ports[0].protocol="UDP" ; spec.ports[0].targetPort=12345"#, ""),
            (r#"spec.ports[0].protocol="""#, ""),
            (r#"spec.clusterIP="None" ; spec.ports[0].targetPort=11721"#, ""),
            (r#"spec.clusterIP="None" ; spec.ports[0].targetPort="target""#, ""),
            (r#"spec.ports[0].appProtocol="HTTP""#, ""),
            (r#"spec.ports[0].appProtocol="a.io/with{invalid}[characters]""#, "Invalid spec.ports[0].appProtocol"),
            (r#"spec.ports[1]={"port":80,"name":"b","protocol":"UDP"} ; spec.ports[2]={"port":80,"name":"c","protocol":"SCTP"}"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.ports[0].protocol="UDP""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.ports[1]={"port":81,"name":"b","protocol":"UDP"}"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.ports[0].port=10250"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.ports[0].nodePort=30080"#, ""),
            (r#"spec.type="NodePort" ; spec.clusterIP="None" ; spec.ports[0].nodePort=30080"#, "Invalid spec.clusterIPs[0]"),
        ]);
}

#[test]
fn addresses() {
    service()
        .created(&[
            (r#"spec.clusterIP="10.96.0.7""#, ""),
            (r#"spec.clusterIP="None""#, ""),
            (
                r#"spec.clusterIP="10.96.0.7" ; spec.clusterIPs=["10.96.0.7"]"#,
                "",
            ),
            (
                r#"spec.clusterIPs=["10.96.0.7"]"#,
                "Invalid spec.clusterIPs",
            ),
            (
                r#"spec.clusterIP="10.96.0.7" ; spec.clusterIPs=["10.96.0.8"]"#,
                "Invalid spec.clusterIPs",
            ),
            // Checks F19 and K6.
            (r#"spec.clusterIP="banana""#, "Invalid spec.clusterIPs[0]"),
            (
                r#"spec.clusterIP="not-an-ip""#,
                "Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.clusterIP="10.96.0.07""#,
                "Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.type="NodePort" ; spec.clusterIP="None""#,
                "Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.type="LoadBalancer" ; spec.clusterIP="None""#,
                "Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.clusterIP="None" ; spec.clusterIPs=["None","10.96.0.7"]"#,
                "Invalid spec.clusterIPs",
            ),
            (
                r#"spec.clusterIP="10.96.0.7" ; spec.clusterIPs=["10.96.0.7","10.96.0.8"]"#,
                "Invalid spec.clusterIPs",
            ),
            (
                r#"spec.clusterIP="fd00::1" ; spec.ipFamilies=["IPv4"]"#,
                "Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.ipFamilies=["IPv5"]"#,
                "NotSupported spec.ipFamilies[0]",
            ),
            (
                r#"spec.ipFamilies=["IPv4","IPv4"]"#,
                "Duplicate spec.ipFamilies[1]",
            ),
            (r#"spec.ipFamilyPolicy="PreferDualStack""#, ""),
            (
                r#"spec.ipFamilyPolicy="TripleStack""#,
                "NotSupported spec.ipFamilyPolicy",
            ),
            (r#"spec.clusterIP="001.002.003.004""#, "Invalid spec.clusterIPs[0]"),
            (r#"spec.clusterIP="no" ; spec.clusterIPs=["no","neither"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[0], Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="no" ; spec.clusterIPs=["no","fd00::1"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[0]"),
            (r#"spec.clusterIP="fd00::1" ; spec.clusterIPs=["fd00::1","no"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="fd00::1" ; spec.clusterIPs=["fd00::1","None"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="fd00::1" ; spec.clusterIPs=["fd00::1",""] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="" ; spec.clusterIPs=["","fd00::1"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs, Invalid spec.clusterIPs[0]"),
            (r#"spec.clusterIP="fd00::1" ; spec.clusterIPs=["fd00::1","fd00::4"] ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs, Invalid spec.clusterIPs[0]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","10.96.0.10"] ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs, Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","fd00::1","10.96.0.10"] ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs"),
            (r#"spec.clusterIP="10.96.0.10" ; spec.clusterIPs=["10.96.0.1","fd00::1"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.ipFamilies=["IPv6"]"#, "Invalid spec.clusterIPs[0]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.ipFamilyPolicy="SingleStack""#, ""),
        ]);
}

#[test]
fn traffic() {
    service()
        .created(&[
            (r#"spec.sessionAffinity="ClientIP""#, ""),
            (r#"spec.sessionAffinity="Cookie""#, "NotSupported spec.sessionAffinity"),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":0}}"#, "Invalid spec.sessionAffinityConfig.clientIP.timeoutSeconds"),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":86401}}"#, "Invalid spec.sessionAffinityConfig.clientIP.timeoutSeconds"),
            (r#"spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":5}}"#, ""),
            (r#"spec.externalIPs=["1.2.3.4"]"#, ""),
            (r#"spec.externalIPs=["0.0.0.0"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalIPs=["127.0.0.1"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalIPs=["169.254.0.1"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalIPs=["224.0.0.1"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalIPs=["a.b"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalTrafficPolicy="Local""#, "Invalid spec.externalTrafficPolicy"),
            (r#"spec.type="NodePort" ; spec.externalTrafficPolicy="Local""#, ""),
            (r#"spec.type="NodePort" ; spec.externalTrafficPolicy="Global""#, "NotSupported spec.externalTrafficPolicy"),
            (r#"spec.externalIPs=["1.2.3.4"] ; spec.externalTrafficPolicy="Local""#, ""),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":1}}"#, ""),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":86400}}"#, ""),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":-1}}"#, "Invalid spec.sessionAffinityConfig.clientIP.timeoutSeconds"),
            (r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{}}"#, ""),
            (r#"spec.externalIPs=["244.1.2.3","2000::1","239.255.255.253","ff05::1:3"]"#, ""),
            (r#"spec.externalIPs=["::0","127.255.255.255","::1","169.254.169.254","fe80::","224.0.0.251","ff02::"]"#, "Invalid spec.externalIPs[0], Invalid spec.externalIPs[1], Invalid spec.externalIPs[2], Invalid spec.externalIPs[3], Invalid spec.externalIPs[4], Invalid spec.externalIPs[5], Invalid spec.externalIPs[6]"),
            (r#"spec.externalIPs=["001.002.003.004"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="invalid""#, "NotSupported spec.externalTrafficPolicy"),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=-1"#, "Invalid spec.healthCheckNodePort"),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Cluster" ; spec.healthCheckNodePort=31000"#, "Invalid spec.healthCheckNodePort"),
            (r#"spec.type="NodePort" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=31000"#, "Invalid spec.healthCheckNodePort"),
            (r#"spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=31000"#, "Invalid spec.externalTrafficPolicy, Invalid spec.healthCheckNodePort"),
            (r#"spec.trafficDistribution="PreferClose""#, ""),
            (r#"spec.trafficDistribution="PreferSameZone""#, ""),
            (r#"metadata.annotations={"service.kubernetes.io/topology-aware-hints":"Auto","service.kubernetes.io/topology-mode":"Other"}"#, "Invalid metadata.annotations[service.kubernetes.io/topology-mode]"),
            (r#"metadata.annotations={"service.kubernetes.io/topology-aware-hints":"Auto","service.kubernetes.io/topology-mode":"Auto"}"#, ""),
            (r#"spec.internalTrafficPolicy="Local""#, ""),
            (r#"spec.internalTrafficPolicy="Global""#, "NotSupported spec.internalTrafficPolicy"),
            (r#"spec.trafficDistribution="PreferSameNode""#, ""),
            (r#"spec.trafficDistribution="Random""#, "NotSupported spec.trafficDistribution"),
            ("spec.healthCheckNodePort=31000", "Invalid spec.healthCheckNodePort"),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=31000"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=100000"#, "Invalid spec.healthCheckNodePort"),
            (r#"spec.loadBalancerSourceRanges=["1.2.3.0/24"]"#, "Forbidden spec.LoadBalancerSourceRanges"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=[" 1.2.3.0/24 "]"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["1.2.3.4/33"]"#, "Invalid spec.LoadBalancerSourceRanges[0]"),
            ("spec.allocateLoadBalancerNodePorts=true", "Forbidden spec.allocateLoadBalancerNodePorts"),
            (r#"spec.type="LoadBalancer" ; spec.allocateLoadBalancerNodePorts=false"#, ""),
            (r#"spec.loadBalancerClass="a.io/b""#, "Forbidden spec.loadBalancerClass"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a b""#, "Invalid spec.loadBalancerClass"),
        ]);
}

#[test]
fn source_ranges() {
    service()
        .created(&[
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="1.2.3.0/24,  5.6.0.0/16""#, ""),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="""#, ""),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="  ""#, ""),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="a.b""#, "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="1.2.3.4/33""#, "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="001.002.003.000/24""#, "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (r#"metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="1.2.3.0/24""#, "Forbidden metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (r#"metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="""#, "Forbidden metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (r#"metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="a.b" ; spec.loadBalancerSourceRanges=["1.2.3.0/24"]"#, "Forbidden spec.LoadBalancerSourceRanges"),
            (r#"spec.type="LoadBalancer" ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="a.b" ; spec.loadBalancerSourceRanges=["1.2.3.0/24"]"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["1.2.3.0/24  "," 5.6.0.0/16"]"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["   "]"#, "Invalid spec.LoadBalancerSourceRanges[0]"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["a.b"]"#, "Invalid spec.LoadBalancerSourceRanges[0]"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["001.002.003.000/24"]"#, "Invalid spec.LoadBalancerSourceRanges[0]"),
        ]);
    // The annotation was not validated, since the field was set.
    let old = r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["1.2.3.0/24"] ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="010.0.0.0/8""#;
    service()
        .updated(&[
            (r#"spec.type="LoadBalancer""#, r#"spec.loadBalancerSourceRanges=["10.0.0.0/8"]"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["10.0.0.0/8"]"#, r#"spec.loadBalancerSourceRanges=["10.100.0.0/16"]"#, ""),
            (r#"spec.type="LoadBalancer""#, r#"spec.loadBalancerSourceRanges=["010.0.0.0/8"]"#, "Invalid spec.LoadBalancerSourceRanges[0]"),
            (r#"spec.type="LoadBalancer""#, r#"metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="010.0.0.0/8, 1.2.3.0/24""#, "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
            (old, r#"spec.loadBalancerSourceRanges=null ; metadata.labels={"a":"b"}"#, ""),
            (old, r#"spec.loadBalancerSourceRanges=null ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="10.0.0.0/8""#, ""),
            (old, r#"spec.loadBalancerSourceRanges=null ; metadata.annotations["service.beta.kubernetes.io/load-balancer-source-ranges"]="010.0.0.0/8, 1.2.3.0/24""#, "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"),
        ]);
}

/// Checks K6: unchanged fields that the new type does not need are dropped.
#[test]
fn changes() {
    let address = "Invalid spec.clusterIPs[0]";
    service()
        .updated(&[
            ("", r#"spec.type="NodePort""#, ""),
            (r#"spec.type="NodePort""#, r#"spec.type="ClusterIP""#, ""),
            (r#"spec.type="LoadBalancer""#, r#"spec.type="ClusterIP""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local""#, r#"spec.type="NodePort""#, ""),
            (r#"spec.type="NodePort""#, r#"spec.type="ExternalName" ; spec.externalName="a.b""#, ""),
            ("", r#"spec.type="ExternalName" ; spec.externalName="a.b""#, ""),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b""#, r#"spec.type="ClusterIP""#, ""),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#, r#"spec.type="ClusterIP" ; spec.ports[0].nodePort=30081"#, "Forbidden spec.ports[0].nodePort"),
            (r#"spec.type="LoadBalancer""#, r#"spec.type="ClusterIP" ; spec.allocateLoadBalancerNodePorts=false"#, "Forbidden spec.allocateLoadBalancerNodePorts"),
            ("", r#"spec.sessionAffinity="ClientIP" ; spec.sessionAffinityConfig={"clientIP":{"timeoutSeconds":90}}"#, ""),
            ("", r#"spec.type="LoadBalancer""#, ""),
            (r#"spec.clusterIP="None""#, "spec.clusterIP=null ; spec.clusterIPs=null", ""),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.type="NodePort" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.type="LoadBalancer" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="NodePort" ; spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="NodePort" ; spec.clusterIP="10.96.0.7""#, r#"spec.type="ClusterIP" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="NodePort" ; spec.clusterIP="10.96.0.7""#, r#"spec.type="LoadBalancer" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="LoadBalancer" ; spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="LoadBalancer" ; spec.clusterIP="10.96.0.7""#, r#"spec.type="ClusterIP" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="LoadBalancer" ; spec.clusterIP="10.96.0.7""#, r#"spec.type="NodePort" ; spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b""#, r#"spec.type="ClusterIP" ; spec.clusterIP="10.96.0.9""#, ""),
            (r#"spec.type="LoadBalancer""#, "spec.allocateLoadBalancerNodePorts=false", ""),
            (r#"spec.type="LoadBalancer" ; spec.allocateLoadBalancerNodePorts=false"#, "spec.allocateLoadBalancerNodePorts=true", ""),
            ("", "spec.allocateLoadBalancerNodePorts=true", "Forbidden spec.allocateLoadBalancerNodePorts"),
            ("", r#"spec.ports[0].appProtocol="https""#, ""),
            ("", r#"spec.ports[0].appProtocol="~https""#, "Invalid spec.ports[0].appProtocol"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"metadata.labels={"a":"b"}"#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, "spec.loadBalancerClass=null", "Invalid spec.loadBalancerClass"),
            (r#"spec.type="LoadBalancer""#, r#"spec.loadBalancerClass="a.io/b""#, "Invalid spec.loadBalancerClass"),
            ("", r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, ""),
            ("", r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="Bad/class""#, "Invalid spec.loadBalancerClass"),
            ("", r#"spec.loadBalancerClass="a.io/b""#, "Forbidden spec.loadBalancerClass"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b""#, r#"spec.loadBalancerClass="a.io/b""#, "Forbidden spec.loadBalancerClass"),
            (r#"spec.type="NodePort""#, r#"spec.loadBalancerClass="a.io/b""#, "Forbidden spec.loadBalancerClass"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.type="NodePort""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.type="ExternalName" ; spec.externalName="a.b""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.type="ClusterIP" ; spec.loadBalancerClass="a.io/c""#, "Forbidden spec.loadBalancerClass"),
            ("", r#"spec.internalTrafficPolicy="Local""#, ""),
            (r#"spec.internalTrafficPolicy="Local""#, r#"spec.internalTrafficPolicy="Cluster""#, ""),
            ("", r#"metadata.annotations={"service.kubernetes.io/topology-aware-hints":"Auto","service.kubernetes.io/topology-mode":"Other"}"#, "Invalid metadata.annotations[service.kubernetes.io/topology-mode]"),
            ("", r#"spec.externalIPs=["1.2.3.04"]"#, "Invalid spec.externalIPs[0]"),
            (r#"spec.externalIPs=["1.2.3.4"]"#, r#"spec.externalIPs=["5.6.7.8","1.2.3.4"]"#, ""),
            ("", "spec.clusterIP=null ; spec.clusterIPs=null", ""),
            ("", r#"spec.clusterIP="""#, ""),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="None""#, address),
            (r#"spec.clusterIP="None""#, r#"spec.clusterIP="10.96.0.7""#, address),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="10.96.0.8""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#, "spec.ports[0].nodePort=30081", ""),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.loadBalancerClass="a.io/c""#, "Invalid spec.loadBalancerClass"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.type="ClusterIP""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=31000"#, "spec.healthCheckNodePort=31001", "Forbidden spec.healthCheckNodePort"),
        ]);
}
