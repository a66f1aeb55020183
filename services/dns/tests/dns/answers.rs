//! Tables of questions and answers.

use hickory_proto::rr::RecordType::{self, A, AAAA, ANY, CNAME, MX, NS, PTR, SOA, SRV, TXT};
use setpoint_dns::{Answer, Index, PodMode, Zone, answer};

use crate::cluster::{index, query, zone};

/// The answer as text: records by type and data, `NODATA`, `NXDOMAIN`, `→ name` for what is forwarded.
fn asked(zone: &Zone, index: &Index, name: &str, of: RecordType) -> String {
    let text = |records: &setpoint_dns::Records| {
        let answers = records.answers.iter();
        let answers = answers.map(|one| format!("{} {}", one.record_type(), one.data));
        let additionals = records.additionals.iter();
        let additionals = additionals.map(|one| format!("+{} {}", one.name, one.data));
        answers.chain(additionals).collect::<Vec<_>>().join("; ")
    };
    match answer(zone, index, &query(name, of)) {
        Answer::NoName => "NXDOMAIN".to_owned(),
        Answer::Elsewhere => "→".to_owned(),
        Answer::Found(records) if records.answers.is_empty() => "NODATA".to_owned(),
        Answer::Found(records) => text(&records),
        Answer::Alias { records, target } => format!("{}; → {target}", text(&records)),
    }
}

#[track_caller]
fn table(zone: &Zone, rows: &[(&str, RecordType, &str)]) {
    let index = index();
    for (name, of, expected) in rows {
        assert_eq!(asked(zone, &index, name, *of), *expected, "{name} {of}");
    }
}

#[test]
fn a_service_with_a_cluster_ip_has_its_address_and_the_ports_with_names() {
    let all = "SRV 0 50 80 web.default.svc.cluster.local.; SRV 0 50 81 web.default.svc.cluster.local.; \
               +web.default.svc.cluster.local. 10.96.0.20";
    let http =
        "SRV 0 100 80 web.default.svc.cluster.local.; +web.default.svc.cluster.local. 10.96.0.20";
    table(
        &zone(),
        &[
            ("web.default.svc.cluster.local.", A, "A 10.96.0.20"),
            ("WEB.Default.svc.Cluster.LOCAL.", A, "A 10.96.0.20"),
            ("web.default.svc.cluster.local.", AAAA, "NODATA"),
            ("web.default.svc.cluster.local.", MX, "NODATA"),
            ("web.default.svc.cluster.local.", ANY, "NODATA"),
            ("web.default.svc.cluster.local.", SRV, all),
            ("_http._tcp.web.default.svc.cluster.local.", SRV, http),
            (
                "_http._tcp.web.default.svc.cluster.local.",
                A,
                "A 10.96.0.20",
            ),
            ("_tcp.web.default.svc.cluster.local.", SRV, "NODATA"),
            ("_udp.web.default.svc.cluster.local.", SRV, "NXDOMAIN"),
            ("_http._udp.web.default.svc.cluster.local.", SRV, "NXDOMAIN"),
            ("_ftp._tcp.web.default.svc.cluster.local.", SRV, "NXDOMAIN"),
            (
                "x._http._tcp.web.default.svc.cluster.local.",
                SRV,
                "NXDOMAIN",
            ),
            ("10-0-0-6.web.default.svc.cluster.local.", A, "A 10.0.0.6"),
            ("web-0.web.default.svc.cluster.local.", A, "NXDOMAIN"),
        ],
    );
}

#[test]
fn a_service_without_a_cluster_ip_has_its_ready_endpoints() {
    let sql = "SRV 0 33 5432 10-0-0-3.db.default.svc.cluster.local.; \
               SRV 0 33 5432 db-0.db.default.svc.cluster.local.; \
               SRV 0 33 5432 db-1.db.default.svc.cluster.local.; \
               +10-0-0-3.db.default.svc.cluster.local. 10.0.0.3; \
               +db-0.db.default.svc.cluster.local. 10.0.0.1; +db-1.db.default.svc.cluster.local. 10.0.0.2";
    let metrics = "SRV 0 100 9187 db-0.db.default.svc.cluster.local.; +db-0.db.default.svc.cluster.local. 10.0.0.1";
    table(
        &zone(),
        &[
            (
                "db.default.svc.cluster.local.",
                A,
                "A 10.0.0.1; A 10.0.0.2; A 10.0.0.3",
            ),
            ("db.default.svc.cluster.local.", AAAA, "NODATA"),
            ("_sql._tcp.db.default.svc.cluster.local.", SRV, sql),
            ("_metrics._tcp.db.default.svc.cluster.local.", SRV, metrics),
            (
                "_metrics._tcp.db.default.svc.cluster.local.",
                A,
                "A 10.0.0.1",
            ),
            ("db-0.db.default.svc.cluster.local.", A, "A 10.0.0.1"),
            ("10-0-0-3.db.default.svc.cluster.local.", A, "A 10.0.0.3"),
            // It has a host name.
            ("10-0-0-1.db.default.svc.cluster.local.", A, "NXDOMAIN"),
            // It is not ready.
            ("db-3.db.default.svc.cluster.local.", A, "NXDOMAIN"),
            ("idle.default.svc.cluster.local.", A, "NXDOMAIN"),
        ],
    );
}

#[test]
fn a_service_with_an_external_name_is_an_alias() {
    let shop = "CNAME www.example.com.";
    let own = "CNAME web.default.svc.cluster.local.";
    let looping = ["CNAME loop.default.svc.cluster.local."; 8].join("; ");
    table(
        &zone(),
        &[
            ("shop.default.svc.cluster.local.", CNAME, shop),
            (
                "shop.default.svc.cluster.local.",
                A,
                &format!("{shop}; → www.example.com."),
            ),
            ("shop.default.svc.cluster.local.", SRV, "NODATA"),
            (
                "_http._tcp.shop.default.svc.cluster.local.",
                SRV,
                "NXDOMAIN",
            ),
            (
                "self.default.svc.cluster.local.",
                A,
                &format!("{own}; A 10.96.0.20"),
            ),
            ("self.default.svc.cluster.local.", AAAA, own),
            ("loop.default.svc.cluster.local.", A, &looping),
            ("number.default.svc.cluster.local.", A, "NXDOMAIN"),
        ],
    );
}

#[test]
fn names_without_records_exist_only_if_names_are_below_them() {
    table(
        &zone(),
        &[
            ("svc.cluster.local.", A, "NODATA"),
            ("pod.cluster.local.", A, "NODATA"),
            ("dns.cluster.local.", A, "NODATA"),
            ("default.svc.cluster.local.", A, "NODATA"),
            ("empty.svc.cluster.local.", A, "NODATA"),
            ("empty.pod.cluster.local.", A, "NODATA"),
            ("absent.svc.cluster.local.", A, "NXDOMAIN"),
            ("web.absent.svc.cluster.local.", A, "NXDOMAIN"),
            ("absent.default.svc.cluster.local.", A, "NXDOMAIN"),
            ("web.cluster.local.", A, "NXDOMAIN"),
            // Wildcards are not served.
            ("*.default.svc.cluster.local.", A, "NXDOMAIN"),
            ("any.any.svc.cluster.local.", SRV, "NXDOMAIN"),
        ],
    );
}

#[test]
fn the_domain_has_records_of_its_own() {
    let soa = "SOA ns.dns.cluster.local. hostmaster.cluster.local. 0 7200 1800 86400 30";
    table(
        &zone(),
        &[
            ("dns-version.cluster.local.", TXT, "TXT 1.1.0"),
            ("dns-version.cluster.local.", A, "NODATA"),
            (
                "cluster.local.",
                NS,
                "NS ns.dns.cluster.local.; +ns.dns.cluster.local. 10.96.0.10",
            ),
            ("cluster.local.", SOA, soa),
            ("cluster.local.", A, "NODATA"),
            ("ns.dns.cluster.local.", A, "A 10.96.0.10"),
            ("ns.dns.cluster.local.", AAAA, "NODATA"),
        ],
    );
}

#[test]
fn addresses_have_the_names_of_services_and_of_endpoints() {
    table(
        &zone(),
        &[
            (
                "20.0.96.10.in-addr.arpa.",
                PTR,
                "PTR web.default.svc.cluster.local.",
            ),
            (
                "20.0.96.10.IN-ADDR.arpa.",
                PTR,
                "PTR web.default.svc.cluster.local.",
            ),
            ("20.0.96.10.in-addr.arpa.", A, "NODATA"),
            (
                "1.0.0.10.in-addr.arpa.",
                PTR,
                "PTR db-0.db.default.svc.cluster.local.",
            ),
            (
                "3.0.0.10.in-addr.arpa.",
                PTR,
                "PTR 10-0-0-3.db.default.svc.cluster.local.",
            ),
            // Not ready, nobody's, of a range that is not ours, no address.
            ("4.0.0.10.in-addr.arpa.", PTR, "→"),
            ("99.0.0.10.in-addr.arpa.", PTR, "→"),
            ("1.1.1.1.in-addr.arpa.", PTR, "→"),
            ("0.0.10.in-addr.arpa.", PTR, "→"),
            ("01.0.0.10.in-addr.arpa.", PTR, "→"),
        ],
    );
}

#[test]
fn pods_have_the_names_of_their_addresses_as_the_mode_says() {
    let mode = |pods| Zone { pods, ..zone() };
    let (web, other) = (
        "10-0-0-6.default.pod.cluster.local.",
        "1-2-3-4.default.pod.cluster.local.",
    );
    table(
        &mode(PodMode::Insecure),
        &[
            (web, A, "A 10.0.0.6"),
            (web, AAAA, "NODATA"),
            (other, A, "A 1.2.3.4"),
            ("fd00--1.default.pod.cluster.local.", AAAA, "AAAA fd00::1"),
            ("1-2-3-4.absent.pod.cluster.local.", A, "NXDOMAIN"),
            ("web-0.default.pod.cluster.local.", A, "NXDOMAIN"),
            ("x.1-2-3-4.default.pod.cluster.local.", A, "NXDOMAIN"),
        ],
    );
    table(
        &mode(PodMode::Verified),
        &[
            (web, A, "A 10.0.0.6"),
            (other, A, "NXDOMAIN"),
            ("10-0-0-6.empty.pod.cluster.local.", A, "NXDOMAIN"),
        ],
    );
    table(&mode(PodMode::Disabled), &[(web, A, "NXDOMAIN")]);
}

#[test]
fn other_names_are_asked_for_elsewhere() {
    table(
        &zone(),
        &[
            ("www.example.com.", A, "→"),
            ("notcluster.local.", A, "→"),
            (".", NS, "→"),
        ],
    );
}

#[test]
fn records_have_the_ttl_of_the_setting() {
    let records = answer(
        &zone(),
        &index(),
        &query("web.default.svc.cluster.local.", A),
    );
    let Answer::Found(records) = records else {
        panic!("{records:?}");
    };
    assert_eq!(records.answers[0].ttl, 30);
}
