#![allow(clippy::unwrap_used)]
use super::*;
use packet::MacAddr;
use proptest::prelude::*;
use std::time::Duration;

/// A small file in which everything is right.
const GOOD: &str = r#"
[[port]]
name = "p0"
driver = "af_packet"
iface = "veth0"

[[interface]]
name = "n3"
port = "p0"
roles = ["n3"]
vlan = 3
addresses = ["198.51.100.1/24"]

[[interface]]
name = "n6"
port = "p0"
roles = ["n6"]
addresses = ["203.0.113.1/24", "2001:db8:6::1/64"]
network-instances = ["Internet"]

[[route]]
to = "0.0.0.0/0"
via = "203.0.113.254"

[[pool]]
ipv4 = ["10.45.0.0/16"]
"#;

fn report(text: &str) -> String {
    parse("upf.toml", text, &[], &[]).unwrap_err().to_string()
}

fn with(set: &[&str]) -> Result<Config, Box<Report>> {
    let set: Vec<String> = set.iter().map(ToString::to_string).collect();
    parse("upf.toml", GOOD, &[], &set)
}

fn wrong(set: &[&str]) -> Vec<Wrong> {
    with(set).unwrap_err().problems.into_iter().map(|problem| problem.wrong).collect()
}

#[test]
fn the_example_is_complete_and_right() {
    let config = parse("example.toml", EXAMPLE, &[], &[]).unwrap();
    assert_eq!(config.ports[0].mtu, 9000);
    assert_eq!(config.workers, Placement::Cores(vec![2, 3]));
    // Every key of the schema is in the example.
    let schema = schema();
    let file: toml::Table = EXAMPLE.parse().unwrap();
    for (section, property) in schema["properties"].as_object().unwrap() {
        let text = property.to_string();
        let name = text.split("#/$defs/").nth(1).unwrap().split('"').next().unwrap();
        let keys = schema["$defs"][name]["properties"].as_object().unwrap().keys();
        for key in keys.filter(|key| *key != "count") {
            let there = match &file[section] {
                toml::Value::Array(items) => items.iter().any(|item| item.get(key).is_some()),
                table => table.get(key).is_some(),
            };
            assert!(there, "{section}.{key} is not in the example");
        }
    }
}

#[test]
fn defaults_in_the_example_are_the_defaults() {
    let config = parse("example.toml", EXAMPLE, &[], &[]).unwrap();
    assert_eq!(config.limits, Limits::default());
    assert_eq!((config.scaling, config.pin), (ScalingSection::default(), Pin::Auto));
    assert_eq!(config.log, Log::default());
    let defaults = sections::N4Section::default();
    assert_eq!(
        (config.n4.heartbeat_interval, config.n4.t1, config.n4.n1),
        (Some(defaults.heartbeat_interval), defaults.t1, defaults.n1)
    );
}

#[test]
fn a_file_becomes_a_configuration() {
    let config = with(&[]).unwrap();
    assert_eq!(config.node_id, NodeId::V4([127, 0, 0, 1].into()));
    assert_eq!(config.n4.listen, "127.0.0.1:8805".parse().unwrap());
    assert!(config.n4.allows("127.0.0.2".parse().unwrap()));
    assert!(config.n4.allows("::ffff:127.0.0.2".parse().unwrap()));
    assert!(!config.n4.allows("192.0.2.1".parse().unwrap()));
    // Only what names it: dpdk lays out the rings.
    assert_eq!(config.ports[0].device.to_string(), "net_af_packet0,iface=veth0");
    let n6 = &config.interfaces[1];
    assert_eq!((n6.port, n6.vlan, n6.mtu), (0, None, 1500));
    assert_eq!(n6.network_instances, ["internet"]);
    assert_eq!(config.interfaces[0].vlan, Some(3));
    assert_eq!(config.routes[0].interface, 1);
    assert_eq!(config.pools[0].network_instance, "");
    assert_eq!(config.workers.workers(), 1);
}

#[test]
fn several_devices_are_one_port() {
    let port = |bond: &str| format!("port.1={{name='lag', {bond}}}");
    let two = "members=['0000:01:00.0', '01:00.1']";
    let good = port(&format!("bond={{mode='active-backup', {two}, primary='0000:01:00.1'}}"));
    let config = with(&[&good]).unwrap();
    let lag = &config.ports[1];
    assert_eq!(lag.device.to_string(), "net_bonding1");
    let bond = lag.bond.as_ref().unwrap();
    assert_eq!(
        (bond.mode, bond.transmit, bond.primary),
        (BondMode::ActiveBackup, BondTransmit::L34, Some(1))
    );
    assert_eq!(bond.members[1].to_string(), "0000:01:00.1");
    assert_eq!(config.ports[0].bond, None);

    let said = |bond: &str| match wrong(&[&port(bond)]).as_slice() {
        [Wrong::Device { what, .. }] => (*what).to_owned(),
        [Wrong::DuplicateDevice { device }] => device.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said("bond={mode='lacp', members=[]}"), "no members, or too many");
    assert_eq!(said(&format!("device='0000:02:00.0', bond={{mode='lacp', {two}}}")), "its device twice");
    assert_eq!(said("bond={mode='lacp', members=['0000:01:00.0', '01:00.0']}"), "0000:01:00.0");
    assert_eq!(
        said("bond={mode='lacp', members=['net_bonding0']}"),
        "an aggregated port as a member of another"
    );
    let primary = |mode, primary| said(&format!("bond={{mode='{mode}', {two}, primary='{primary}'}}"));
    assert_eq!(primary("active-backup", "0000:09:00.0"), "a primary that is none of its members");
    assert_eq!(primary("balance", "0000:01:00.0"), "a primary, which only `active-backup` has");
    assert_eq!(
        said(&format!("bond={{mode='balance', {two}, timeout='long'}}")),
        "a timeout, which only `lacp` has"
    );
    let lacp = |more: &str| {
        with(&[&port(&format!("bond={{mode='lacp', {two}{more}}}"))]).unwrap().ports[1].bond.clone().unwrap()
    };
    assert_eq!((lacp("").timeout, lacp(", timeout='long'").timeout), (BondTimeout::Short, BondTimeout::Long));
    // A kernel interface that another port has, by its device's name.
    assert_eq!(said("bond={mode='balance', members=['net_af_packet0,iface=veth1']}"), "net_af_packet0");
}

#[test]
fn layers_lie_over_each_other() {
    let environment: Vec<(String, String)> = [
        ("MILLRACE_N4__T1", "5s"),
        ("MILLRACE_N4__HEARTBEAT_INTERVAL", "0s"),
        ("MILLRACE_PORT__0__MTU", "4000"),
        ("MILLRACE_INTERFACE__N6__MTU", "2000"),
        ("MILLRACE_LOG", "not ours to read here"),
        ("PATH", "/bin"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let set = ["port.p0.mtu=3000", "n4.associate-with = ['127.0.0.9:8805']", "node.name=west"];
    let set = set.map(str::to_owned).to_vec();
    let config = parse("upf.toml", GOOD, &environment, &set).unwrap();
    assert_eq!(config.n4.t1, Duration::from_secs(5));
    assert_eq!(config.n4.heartbeat_interval, None);
    assert_eq!(config.ports[0].mtu, 3000);
    assert_eq!(config.interfaces[1].mtu, 2000);
    assert_eq!(config.n4.associate_with, ["127.0.0.9:8805".parse().unwrap()]);
    assert_eq!(config.name, "west");
}

#[test]
fn overrides_add_entries() {
    let config = with(&[
        "neighbour.0.interface=n6",
        "neighbour.0.address=203.0.113.9",
        "neighbour.0.mac=02:00:00:00:00:09",
    ]);
    assert_eq!(config.unwrap().neighbours[0].interface, 1);
    let config = with(&["pool.1.ipv6=['2001:db8:45::/48']"]).unwrap();
    assert_eq!(config.pools.len(), 2);
}

#[test]
fn slices_are_told_apart() {
    let config = with(&[
        "slice.0.name=video",
        "slice.0.s-nssai=1-00007b",
        "slice.0.network-instances=['tv']",
        "slice.0.uplink=1Gbit/s",
        "slice.0.uplink-guaranteed=500 Mbit/s",
        "slice.1.name=iot",
        "slice.1.s-nssai='3'",
    ]);
    let slices = config.unwrap().slices;
    let rates = (slices[0].uplink, slices[0].uplink_guaranteed, slices[0].downlink);
    assert_eq!(rates, (Some(BitRate(1_000_000_000)), Some(BitRate(500_000_000)), None));
    assert_eq!(slices[1].s_nssai.unwrap().to_string(), "3");
    insta::assert_snapshot!(
        with(&[
            "slice.0.name=a",
            "slice.0.s-nssai='1'",
            "slice.0.network-instances=['tv']",
            "slice.0.uplink-guaranteed=1kbit/s",
            "slice.1.name=b",
            "slice.1.s-nssai=1-ffffff",
            "slice.1.network-instances=['TV']",
            "slice.1.downlink=1kbit/s",
            "slice.1.downlink-guaranteed=1001bit/s",
            "slice.2.name=a",
            "slice.2.uplink-excess-burst=1000",
            "slice.2.downlink=1Mbit/s",
            "slice.2.downlink-guaranteed=1Mbit/s",
            "slice.2.downlink-excess-burst=1000",
        ])
        .unwrap_err()
        .to_string()
    );
    insta::assert_snapshot!(
        with(&["slice.0.name=a", "slice.0.s-nssai=1-7b", "slice.0.uplink=1Gb", "slice.0.downlink=-1bit/s"])
            .unwrap_err()
            .to_string()
    );
}

#[test]
fn a_flow_log_without_a_file_is_none() {
    let keys = ["watermark-bytes=1000", "max-bytes=0", "sample=1", "active-timeout=1m"];
    let set = keys.map(|key| format!("flow-log.{key}"));
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    // Also where the value is the default: somebody expects something of it.
    let report = with(&set).unwrap_err();
    assert_eq!(report.problems.len(), keys.len());
    let text = report.to_string();
    assert!(
        text.contains(
            "--set flow-log.watermark-bytes=1000: `watermark-bytes` has no effect: [flow-log] has no `file`\n  \
             help: add `file = …` to [flow-log], or drop `watermark-bytes`\n"
        ),
        "{text}"
    );
    let with_file = [&set[..], &["flow-log.file=/tmp/flows.jsonl"]].concat();
    assert_eq!(with(&with_file).unwrap().flow_log.watermark_bytes, Some(1000));
    assert!(with(&["flow-log.file=/tmp/flows.jsonl"]).is_ok());
}

#[test]
fn qfis_and_dscps_have_one_meaning() {
    let config = with(&["marking.0.qfi=5", "marking.0.outer=EF", "marking.0.accept=['EF', 'cs5']"]).unwrap();
    let five = &config.marking[0];
    assert_eq!((five.outer, five.inner), (Some("EF".parse().unwrap()), None));
    assert_eq!(five.accept, ["EF", "CS5"].map(|dscp| dscp.parse().unwrap()));
    insta::assert_snapshot!(
        with(&[
            "marking.0.qfi=5",
            "marking.0.accept=['EF', 'AF41']",
            "marking.1.qfi=5",
            "marking.1.accept=['46']",
            "marking.1.outer=AF44",
            "marking.2.qfi=64",
        ])
        .unwrap_err()
        .to_string()
    );
    insta::assert_snapshot!(
        with(&["marking.0.qfi=5", "marking.0.accept=['EF']", "marking.1.qfi=5", "marking.1.accept=['46']"])
            .unwrap_err()
            .to_string()
    );
}

#[test]
fn overrides_that_lead_nowhere() {
    insta::assert_snapshot!(
        with(&[
            "port.7.mtu=9000",
            "port.wan.mtu=9000",
            "n4",
            "n4..t1=3s",
            "node.name.first=x",
            "n4.lissten=127.0.0.1:1",
            "port.0.mtu=many",
            "workers.count=0",
        ])
        .unwrap_err()
        .to_string()
    );
    insta::assert_snapshot!(
        with(&["n4.lissten=127.0.0.1:1", "port.0.mtu=many", "workers.count=0"]).unwrap_err().to_string()
    );
}

#[test]
fn what_is_not_toml() {
    insta::assert_snapshot!(report("[n4\nlisten = \"127.0.0.1:8805\nt1 = = 3\n[[port]]\nname = 'a\n"));
}

#[test]
fn what_can_not_be_read_is_reported_at_once() {
    insta::assert_snapshot!(report(
        r#"
[n4]
listen = "192.0.2.1"
heartbeat_interval = "10s"
t1 = 3
n1 = 99

[[port]]
name = "p0"
device = "eth0"
mut = 9000
rx-descriptors = 99999999999999999999

[[port]]
device = "0000:01:00.0"
mtu = 10000

[[interface]]
name = "n3"
port = "p0"
roles = ["n3", "n4"]
addresses = ["198.51.100.1", "2001:db8::/129"]
vlan = 4095

[[interface]]
name = 6
port = ["p0"]
roles = "n6"
addresses = []

[worker]
count = 2

[workers]
memory = "hugepages"
cores = []
"#
    ));
}

#[test]
fn what_makes_no_sense_is_reported_at_once() {
    insta::assert_snapshot!(report(
        r#"
[n4]
listen = "192.0.2.1:8805"
t1 = "1ms"

[[port]]
name = "p0"
driver = "af_packet"
iface = "veth0"

[[port]]
name = "p0"
device = "0000:01:00.0"
driver = "af_xdp"

[[port]]
name = "7"
driver = "tap"
iface = "veth0"

[[interface]]
name = "n3"
port = "p1"
roles = ["n3"]
addresses = ["198.51.100.0/24", "224.0.0.1/24"]

[[interface]]
name = "n6"
port = "p0"
roles = ["n6"]
mtu = 9000
addresses = ["203.0.113.1/24"]

[[interface]]
name = "n6b"
port = "p0"
roles = []
addresses = ["203.0.113.200/25", "203.0.113.1/24"]

[[route]]
to = "0.0.0.0/0"

[[route]]
to = "198.18.0.1/15"
via = "192.0.2.254"

[[route]]
to = "::/0"
via = "203.0.113.254"
interface = "n6"

[[neighbour]]
interface = "n7"
address = "203.0.113.9"
mac = "ff:ff:ff:ff:ff:ff"

[[pool]]
ipv4 = ["203.0.113.0/24", "203.0.113.128/25", "10.45.0.1/16"]
ipv6 = ["2001:db8::/96"]

[[pool]]

[workers]
count = 2
cores = [1, 1]

[limits]
sessions = 100
sessions-per-peer = 101

[log]
filter = "loud"
"#
    ));
}

#[test]
fn an_empty_file_lacks_interfaces() {
    insta::assert_snapshot!(report(""));
}

#[test]
fn n4_in_the_open_needs_peers_and_a_name() {
    let found = wrong(&["n4.listen=0.0.0.0:8805"]);
    assert_eq!(found.len(), 2);
    assert!(found.contains(&Wrong::PeersMissing { listen: "0.0.0.0:8805".into() }));
    assert!(found.contains(&Wrong::NodeIdMissing));
    assert!(with(&["n4.listen=0.0.0.0:8805", "n4.peers=['0.0.0.0/0']", "node.id=upf.example.org"]).is_ok());
    assert_eq!(wrong(&["n4.peers=[]"]).len(), 1);
}

#[test]
fn no_ue_may_speak_n4() {
    for peers in ["10.45.7.0/24", "10.45.0.0/16", "10.0.0.0/8"] {
        let found = wrong(&[&format!("n4.peers=['192.0.2.0/24', '{peers}']")]);
        let (pool, peers) = ("10.45.0.0/16".parse().unwrap(), peers.parse().unwrap());
        assert_eq!(found, [Wrong::PoolHasPeers { pool, peers }]);
    }
    assert!(with(&["n4.peers=['10.46.0.0/16', '2001:db8::/32']"]).is_ok());
}

#[test]
fn no_more_flows_are_reserved_than_there_may_be() {
    assert!(with(&["limits.flows=4096", "limits.flows-reserved=4096"]).is_ok());
    assert!(matches!(
        wrong(&["limits.flows=4096", "limits.flows-reserved=4097"])[..],
        [Wrong::LimitOrder { part: "flows-reserved", limit: 4096, .. }]
    ));
}

#[test]
fn the_default_route_leads_to_n6() {
    let routed = |text: &str| parse("upf.toml", &text.replace("203.0.113.254", "198.51.100.254"), &[], &[]);
    let problems = routed(GOOD).unwrap_err().problems;
    let [Problem { wrong: Wrong::DefaultRoute { interface, n6, .. }, .. }] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert_eq!((interface.as_str(), n6.as_str()), ("n3", "n6"));
    // gNBs behind a router; a UPF without N6; and one whose N6 speaks the other family only.
    assert!(routed(&GOOD.replace("0.0.0.0/0", "10.0.0.0/8")).is_ok());
    assert!(routed(&GOOD.replace("[\"n6\"]", "[\"n9\"]")).is_ok());
    assert!(routed(&GOOD.replace("\"203.0.113.1/24\", ", "")).is_ok());
}

#[test]
fn a_chain_of_upfs_needs_no_n3_or_no_n6() {
    assert!(with(&["interface.n3.roles=['n9']"]).is_ok());
    assert!(with(&["interface.n6.roles=['n9']"]).is_ok());
    assert!(matches!(
        wrong(&["interface.n3.roles=['n6']"])[..],
        [Wrong::RoleMissing { roles: "`n3` or `n9`", .. }]
    ));
}

#[test]
fn link_local_addresses_can_be_on_every_link() {
    assert!(
        with(&[
            "interface.n3.addresses=['198.51.100.1/24','fe80::1/64']",
            "interface.n6.addresses=['203.0.113.1/24','fe80::2/64']",
        ])
        .is_ok()
    );
}

#[test]
fn a_huge_file_and_deep_keys_are_refused() {
    let huge = "#".repeat(MAX_FILE_BYTES + 1);
    assert!(matches!(parse("x", &huge, &[], &[]).unwrap_err().problems[0].wrong, Wrong::TooLarge { .. }));
    let deep = "a.".repeat(MAX_FILE_BYTES / 2 - 8) + "a = 1";
    assert!(parse("x", &deep, &[], &[]).is_err());
    let header = format!("[{}a]", "a.".repeat(100_000));
    assert!(parse("x", &header, &[], &[]).is_err());
    let nested = "a = ".to_owned() + &"[".repeat(100_000);
    assert!(parse("x", &nested, &[], &[]).is_err());
    assert!(with(&[&format!("n4.listen={{ {}a = 1 }}", "a.".repeat(100_000))]).is_err());
    assert!(with(&[&format!("{}a=1", "a.".repeat(100_000))]).is_err());
}

#[test]
fn many_problems_are_bounded() {
    let text: String = (0..10_000).map(|i| format!("k{i} = 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(parse("x", &text, &[], &[]).unwrap_err().problems.len(), MAX_PROBLEMS);
}

#[test]
fn files_that_can_not_be_read() {
    let missing = load(Path::new("/nonexistent/upf.toml"), &[], &[]).unwrap_err();
    assert!(matches!(missing, LoadError::Read { .. }));
    assert_eq!(
        missing.to_string(),
        "can't read the configuration /nonexistent/upf.toml: No such file or directory (os error 2)"
    );
}

#[test]
fn the_schema_is_as_reviewed() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema()).unwrap());
}

/// TOML-like text: pieces of the example, of other keys and of rubbish in any order.
fn rubbish() -> impl Strategy<Value = String> {
    let lines: Vec<String> = EXAMPLE.lines().chain(GOOD.lines()).map(str::to_owned).collect();
    let line = prop_oneof![
        4 => proptest::sample::select(lines),
        1 => "[a-z0-9]{1,8} = [0-9a-z\"'\\[\\]{}.,:/-]{0,12}",
        1 => "\\PC{0,24}",
        1 => proptest::sample::select(vec!["[[port]]", "[port]", "port = 1", "port.name = 2", "[n4.listen]", "interface = []"]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn nothing_that_is_written_panics(text in rubbish(), value in "\\PC{0,16}", path in "[a-z0-9.]{0,16}") {
        let set = [format!("{path}={value}"), format!("port.0.{path}={value}")];
        for set in [&[][..], &set[..]] {
            if let Err(report) = parse("x", &text, &[], set) {
                prop_assert!(!report.problems.is_empty());
                prop_assert!(!report.to_string().is_empty());
                for problem in &report.problems {
                    if let Place::File(span) = &problem.place {
                        prop_assert!(text.get(span.clone()).is_some(), "{problem:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn any_bytes(bytes: Vec<u8>) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(parse("x", &text, &[], &[]).is_err());
    }
}

#[test]
fn queues_are_checked_and_know_our_addresses() {
    use engine::egress::{Kind, Plan};
    use io::steering::Duty;
    use packet::Dscp;

    let config = parse("example.toml", EXAMPLE, &[], &[]).unwrap();
    let classes = config.qos.egress.classes();
    assert_eq!(
        classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(),
        ["voice", "video", "rest"]
    );
    assert_eq!(
        (classes[0].kind, classes[0].packets, classes[0].bytes),
        (Kind::Strict { share: Some(60) }, 128, 65_536)
    );
    assert_eq!((classes[1].kind, classes[1].dscps[3].get()), (Kind::Weighted { weight: 3 }, 35));
    assert_eq!(config.qos.steering.groups()[0].dscps, [Dscp::EF, Dscp::VA]);
    // An echo request to an address of ours is control, to another's it is not.
    let echo = |to: [u8; 4]| {
        let builder = packet::PacketBuilder::new().ethernet(MacAddr::ZERO, MacAddr::ZERO);
        let builder = builder.ipv4([198, 51, 100, 9].into(), to.into()).udp(2152, 2152);
        builder.gtpu_message(packet::gtpu::MessageType::ECHO_REQUEST, packet::Teid(0)).build(&[])
    };
    assert_eq!(config.qos.steering.duty(&echo([198, 51, 100, 1])), Some(Duty::Control));
    assert_eq!(config.qos.steering.duty(&echo([198, 51, 100, 2])), None);

    let config = with(&[]).unwrap();
    let own = ["198.51.100.1", "203.0.113.1", "2001:db8:6::1", "127.0.0.1"].map(|own| own.parse().unwrap());
    assert_eq!(*config.qos.egress, Plan::standard(own));
    assert!(config.qos.steering.control().is_some());
    assert!(with(&["qos.control-queue=false"]).unwrap().qos.steering.is_none());
}

#[test]
fn queues_that_can_not_be_are_reported() {
    let text = format!(
        "{GOOD}\n{}",
        r#"
[[qos.class]]
name = "voice"
dscp = ["EF", "AF44", "64"]
weight = 200
[[qos.group]]
name = "voice"
dscp = "EF"
"#
    );
    insta::assert_snapshot!(report(&text));
    let text = format!(
        "{GOOD}\n{}",
        r#"
[[qos.class]]
name = "voice"
dscp = ["ef"]
weight = 2
share = 3
[[qos.class]]
name = "video"
dscp = ["46"]
[[qos.class]]
name = "rest"
[[qos.group]]
name = "a"
dscp = ["CS5"]
[[qos.group]]
name = "b"
dscp = ["AF41", "CS5"]
"#
    );
    insta::assert_snapshot!(report(&text));
    assert!(
        report(&format!("{GOOD}\n[[qos.class]]\nname = 'a'\ndscp = ['EF']\n")).contains("no code points")
    );
}

#[test]
fn mirrors_are_examined() {
    let mirrored = |text: &str| parse("upf.toml", &format!("{GOOD}\n{text}"), &[], &[]);
    let config = mirrored("[[mirror]]\nname = 'a'\nto = 'gre'\ndestination = '203.0.113.9'\n").unwrap();
    assert_eq!(
        config.mirrors,
        [Mirror {
            name: "a".into(),
            target: MirrorTarget::Gre { destination: "203.0.113.9".parse().unwrap(), key: None },
            sample: 1,
            truncate: u16::MAX,
        }]
    );
    let wrong = |text: &str| -> Vec<Wrong> {
        mirrored(text).unwrap_err().problems.into_iter().map(|problem| problem.wrong).collect()
    };
    let missing = |key: &str| Wrong::MissingKey { key: key.into(), section: "[[mirror]]".into() };
    assert_eq!(wrong("[[mirror]]\nname = 'a'\nto = 'port'"), [missing("port"), missing("mac")]);
    assert_eq!(wrong("[[mirror]]\nname = 'a'\nto = 'gtpu'"), [missing("destination"), missing("teid")]);
    assert_eq!(
        wrong("[[mirror]]\nname = 'a'\nto = 'erspan'"),
        [missing("destination"), missing("session-id")]
    );
    assert_eq!(wrong("[[mirror]]\nname = 'a'\nto = 'pcapng'"), [missing("path")]);
    let surplus = "[[mirror]]\nname = 'a'\nto = 'gre'\ndestination = '203.0.113.9'\nteid = 1";
    assert_eq!(wrong(surplus), [Wrong::MirrorKey { key: "teid", kind: "gre" }]);
    let unknown = "[[mirror]]\nname = 'a'\nto = 'port'\nport = 'p1'\nmac = '02:00:00:00:00:05'";
    assert!(matches!(&wrong(unknown)[..], [Wrong::UnknownName { kind: "port", .. }]));
    let large = "[[mirror]]\nname = 'a'\nto = 'erspan'\ndestination = '203.0.113.9'\nsession-id = 1024";
    assert!(matches!(&wrong(large)[..], [Wrong::OutOfRange { greatest: 1023, .. }]));
    let twins = "[[mirror]]\nname = 'a'\nto = 'pcapng'\npath = 'x'\n".repeat(2);
    assert!(matches!(&wrong(&twins)[..], [Wrong::DuplicateName { kind: "mirror", .. }]));
    assert!(matches!(&wrong("[[mirror]]\nname = 'a'\nto = 'disk'")[..], [Wrong::UnknownWord { .. }]));
}

#[test]
fn scaling_is_examined() {
    use engine::plan::scaler::Scaler;

    let config = with(&["workers.count=8", "scaling.automatic=true", "scaling.min-workers=2"]).unwrap();
    let policy = config.scaling.policy(usize::from(config.workers.workers()));
    assert_eq!((policy.min, policy.max, policy.automatic), (2, 8, true));
    assert_eq!(config.scaling.limits().map(|limits| (limits.imbalance, limits.settle)), Some((0.1, 0.02)));
    assert_eq!(with(&["scaling.rebalance=false"]).unwrap().scaling.limits(), None);
    let keys = ["low=40", "hold-up=1ms", "hold-down=2h", "cool-down=61m", "interval=5ms", "min-workers=2"];
    let found = wrong(&keys.map(|key| format!("scaling.{key}")).each_ref().map(String::as_str));
    assert_eq!(found.len(), keys.len());
    assert!(found.contains(&Wrong::Swinging { low: 40, high: 80 }));
    assert_eq!(found[0].help().unwrap(), "lower it to 39 or less, or raise `high`");
    // What passes here passes there.
    for high in (3..=99_u8).step_by(8) {
        for low in (1..=49_u8).step_by(6) {
            let set = [format!("scaling.high={high}"), format!("scaling.low={low}")];
            let made = with(&[&set[0], &set[1]]).map(|config| Scaler::new(config.scaling.policy(1)));
            assert_eq!(made.is_ok(), low * 2 < high);
            assert!(made.is_err() || made.is_ok_and(|scaler| scaler.is_ok()), "{low} {high}");
        }
    }
}

/// Each line of `set` alone, and the one sentence that it leads to.
#[test]
fn what_can_not_be_meant_is_reported() {
    let said = |set: &[&str], place: &str, sentence: &str, help: &str| {
        let report = with(set).unwrap_err();
        let text = report.to_string();
        assert_eq!(report.problems.len(), 1, "{text}");
        for part in [place, sentence, help] {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    let pool = |prefix: &str, what: &str| {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let set = format!("pool.1.{family}=['{prefix}']");
        said(&[&set], &set, &format!("can't be a pool: it has {what}"), "private addresses");
    };
    pool("224.0.0.0/8", "multicast");
    pool("239.1.0.0/16", "multicast");
    pool("127.128.0.0/24", "loopback");
    pool("0.0.0.0/8", "addresses of \"this network\"");
    pool("169.254.0.0/16", "link-local");
    pool("fe80::/48", "link-local");
    pool("febf::/64", "link-local");
    pool("ff02::/48", "multicast");
    pool("::/64", "loopback and mapped");
    let subnet = |prefix: &str| {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let set = format!("pool.1.{family}=['{prefix}']");
        said(&[&set], &set, "the subnet and the pool", "take other addresses");
    };
    subnet("198.51.100.128/25");
    subnet("203.0.113.64/28");
    said(
        &["route.0.via=203.0.113.1"],
        "--set route.0.via",
        "next hop 203.0.113.1 is this UPF's own",
        "other station",
    );
    let neighbour = ["neighbour.0.interface=n6", "neighbour.0.mac=02:00:00:00:00:09"];
    let [interface, mac] = neighbour;
    let own = "neighbour.0.address=2001:db8:6::1";
    said(
        &[interface, mac, own],
        "--set neighbour.0.address",
        "neighbour 2001:db8:6::1 is this",
        "other station",
    );
    let gre = ["mirror.0.name=a", "mirror.0.to=gre"];
    said(
        &[gre[0], gre[1], "mirror.0.destination=198.51.100.1"],
        "--set mirror.0.destination",
        "far end 198.51.100.1 is this",
        "other",
    );
    said(
        &[gre[0], gre[1], "mirror.0.destination=10.45.3.4"],
        "--set mirror.0.destination",
        "is in the pool 10.45.0.0/16",
        "no UE",
    );
    let logs = ["flow-log.file=/var/log/a.jsonl", "nat-log.file=/var//log/./a.jsonl"];
    said(&logs, "--set flow-log.file", "the file of two logs", "of its own");
    said(&["ctl.socket=''"], "--set ctl.socket", "0 bytes", "from 1 to 99 bytes");
    let long = format!("ctl.socket=/{}", "x".repeat(99));
    said(&[&long], "--set ctl.socket", "100 bytes", "from 1 to 99 bytes");
    assert!(with(&[&long[..long.len() - 1]]).is_ok());
}

#[test]
fn dpdk_has_room_for_so_many_devices() {
    let port = |n: usize| format!("port.{n}={{name='q{n}', driver='af_packet', iface='veth{n}'}}");
    let ports = |count: usize| (1..count).map(port).collect::<Vec<_>>();
    let with = |ports: &[String]| super::parse("upf.toml", GOOD, &[], ports);
    assert!(with(&ports(32)).is_ok());
    let report = with(&ports(4_000)).unwrap_err();
    assert!(
        matches!(report.problems[..], [Problem { wrong: Wrong::TooManyDevices { most: 32 }, .. }]),
        "{report}"
    );
    assert!(report.to_string().starts_with("--set port.32="), "{report}");
    let mut bonds = ports(30);
    bonds
        .push("port.30={name='lag', bond={mode='balance', members=['0000:01:00.0', '0000:01:00.1']}}".into());
    assert!(with(&bonds).is_err());
}

#[test]
fn one_table_for_a_list_is_said_so() {
    let text = report("[port]\nname = 'p0'\n[qos.class]\nname = 'a'\n[n4]\npeers = { a = 1 }\n");
    assert!(text.contains("[port] is one table where a list of them belongs"), "{text}");
    assert!(text.contains("help: write [[port]], once for each"), "{text}");
    assert!(text.contains("help: write [[qos.class]], once for each"), "{text}");
    assert!(text.contains("6:9: a table is not a list; each item is a prefix"), "{text}");
}

#[test]
fn everybody_as_an_smf_is_warned_of() {
    assert!(with(&[]).unwrap().warnings().is_empty());
    let open = with(&["n4.peers=['192.0.2.0/24', '0.0.0.0/0', '::/0']"]).unwrap().warnings();
    assert_eq!(open.len(), 2);
    assert!(
        open[0].starts_with("n4.peers: 0.0.0.0/0 lets everybody") && open[1].contains("::/0"),
        "{open:?}"
    );
}

#[test]
fn metrics_are_this_machines_unless_the_file_says_otherwise() {
    for (listen, is_ours) in [
        ("127.0.0.1:9090", true),
        ("[::1]:9090", true),
        ("0.0.0.0:9090", false),
        ("192.0.2.1:1", false),
        ("[::]:9090", false),
    ] {
        let set = format!("metrics.listen={listen}");
        let told = with(&[&set]);
        assert_eq!(told.is_ok(), is_ours, "{listen}");
        if let Err(report) = told {
            let said = report.to_string();
            assert!(
                said.contains("whoever reaches it may read") && said.contains("beyond-loopback = true"),
                "{said}"
            );
        }
        let meant = with(&[&set, "metrics.beyond-loopback=true"]).unwrap();
        assert_eq!(meant.metrics.listen, Some(listen.parse().unwrap()));
    }
}
