//! Services.

use serde_json::json;

use super::table::Base;

fn service() -> Base {
    Base {
        resource: "services",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"app": "web"}},
        }),
    }
}

#[tokio::test]
async fn names_types_and_selectors() {
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
            (r#"spec.type="ExternalName" ; spec.externalName="a.b.""#, ""),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.ports=[]"#, ""),
            (r#"spec.type="ExternalName""#, "Required spec.externalName"),
            (r#"spec.type="ExternalName" ; spec.externalName="a b""#, "Invalid spec.externalName"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b..""#, "Invalid spec.externalName"),
            // Checks K6.
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="10.96.0.7""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="None""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.ipFamilies=["IPv4"] ; spec.ipFamilyPolicy="SingleStack""#, "Forbidden spec.ipFamilies, Forbidden spec.ipFamilyPolicy"),
        ])
        .await;
}

#[tokio::test]
async fn ports() {
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
            // Checks F19 and K6.
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=80"#, "Invalid spec.ports[0].nodePort"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=58930"#, "Invalid spec.ports[0].nodePort"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=32768"#, "Invalid spec.ports[0].nodePort"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=-1"#, "Invalid spec.ports[0].nodePort"),
        ])
        .await;
}

#[tokio::test]
async fn addresses() {
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
            (r#"spec.clusterIP="8.8.8.8""#, "Invalid spec.clusterIPs"),
            (r#"spec.clusterIP="10.96.0.0""#, "Invalid spec.clusterIPs"),
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
            (r#"spec.ipFamilies=["IPv6"]"#, "Invalid spec.ipFamilies[0]"),
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
                r#"spec.ipFamilyPolicy="RequireDualStack""#,
                "Invalid spec.ipFamilyPolicy",
            ),
            (
                r#"spec.ipFamilyPolicy="TripleStack""#,
                "NotSupported spec.ipFamilyPolicy",
            ),
        ])
        .await;
}

#[tokio::test]
async fn traffic() {
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
        ])
        .await;
}

/// Checks K6: what the new type does not need, and nobody touched, goes without a word.
#[tokio::test]
async fn changes() {
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
            ("", "spec.clusterIP=null ; spec.clusterIPs=null", ""),
            ("", r#"spec.clusterIP="""#, ""),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="10.96.0.8""#, address),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="None""#, address),
            (r#"spec.clusterIP="None""#, r#"spec.clusterIP="10.96.0.7""#, address),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.type="ExternalName" ; spec.externalName="a.b" ; spec.clusterIP="10.96.0.8""#, "Forbidden spec.clusterIPs"),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#, "spec.ports[0].nodePort=30081", ""),
            (r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#, "spec.ports[0].nodePort=81", "Invalid spec.ports[0].nodePort"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.loadBalancerClass="a.io/c""#, "Invalid spec.loadBalancerClass"),
            (r#"spec.type="LoadBalancer" ; spec.loadBalancerClass="a.io/b""#, r#"spec.type="ClusterIP""#, ""),
            (r#"spec.type="LoadBalancer" ; spec.externalTrafficPolicy="Local" ; spec.healthCheckNodePort=31000"#, "spec.healthCheckNodePort=31001", "Forbidden spec.healthCheckNodePort"),
        ])
        .await;
}
