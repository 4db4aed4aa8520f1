//! Real programs through the real UPF: `millrace lab` with ping, curl, iperf3 and tshark as judges.
//!
//! The tests run one after the other, each in a lab of its own name, with the release binary if there is one. Where the
//! machine lacks root or a tool, a test says so and passes; `./x test` installs the tools.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod applications;
mod rig;
mod siege;

use crate::rig::{Lab, alone, binary, lacking, left_of, millrace, said};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testing::Directory;

/// The UE's interface takes packets of this size (`--mtu` of the lab's UE).
const UE_MTU: usize = 1400;
/// IPv4, UDP, GTP-U with an extension header: what a tunnel adds.
const TUNNEL: usize = 20 + 8 + 16;
/// The MTU of the cables.
const LINK_MTU: usize = 1500;

#[test]
fn one_command_runs_as_the_ue() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let name = format!("t{}-run", std::process::id());
    let script =
        "ping -c 2 -W 5 -4 dn >&2 && ping -c 2 -W 5 -6 dn >&2 && millrace ctl version >&2 && cat && exit 7";
    let mut child = millrace(&["lab", "--name", &name, "run", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from standard input").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(output.stdout, b"from standard input", "nothing but the command's own output");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.matches("2 received").count(), 2, "{stderr}");
    assert!(stderr.contains("203.0.113.2") && stderr.contains("2001:db8:6::2"), "{stderr}");
    assert_eq!(left_of(&name), Vec::<String>::new());
}

/// Pings and a download go on, in the same tunnels; and the SMF, which deletes the session at the end, still has it.
#[test]
fn a_restart_is_not_noticed_by_ue_or_smf() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("restart", &["--workers", "2"]);
    lab.ue("ping -c 3 -W 5 -4 dn && ping -c 3 -W 5 -6 dn");
    let seen = || {
        let seid = lab.ctl("sessions")["sessions"][0]["seid"].as_str().unwrap().to_owned();
        let session = lab.ask(&["session", &seid]);
        let packets = |pdr: &serde_json::Value| pdr["packets"].as_u64().unwrap();
        let counted: u64 = session["pdrs"].as_array().unwrap().iter().map(packets).sum();
        (seid, counted, lab.ctl("version")["pid"].as_u64().unwrap())
    };
    let (seid, counted, pid) = seen();
    assert!(counted >= 12, "{counted}");
    let state = format!("/run/millrace/lab-{}/state", lab.name);
    let directory = Directory::new("restart");
    let file = directory.0.join("bytes");
    let download = format!("curl -sS --fail --limit-rate 3M -o {} http://dn/bytes/30000000", file.display());
    std::thread::scope(|scope| {
        let ping = scope.spawn(|| lab.ue("ping -i 0.2 -w 14 -4 dn; true"));
        let curl = scope.spawn(|| lab.ue(&download));
        std::thread::sleep(Duration::from_secs(2));
        let told = lab.ask(&["dump", "--stop", &state]);
        assert_eq!((&told["sessions"], &told["stopped"]), (&1.into(), &true.into()), "{told}");
        curl.join().unwrap();
        let said = ping.join().unwrap();
        // The last of them came.
        let last = said.lines().rfind(|line| line.contains("icmp_seq=")).unwrap().to_owned();
        let number = last.split("icmp_seq=").nth(1).unwrap().split(' ').next().unwrap();
        assert!(number.parse::<u32>().unwrap() > 40, "{said}");
        println!("{}", said.lines().rfind(|line| line.contains("received")).unwrap());
    });
    assert!(
        std::fs::read(&file).unwrap() == lab::web::pattern(30_000_000),
        "what arrived is not what was sent"
    );
    let after = seen();
    assert_eq!(after.0, seid);
    assert!(after.1 > counted && after.2 != pid, "{after:?}");
    let n4 = lab.ask(&["n4", "--all"]);
    let count = |name: &str| {
        let lines = n4["counters"].as_array().unwrap();
        lines.iter().find(|line| line["counter"] == name).unwrap()["value"].as_u64().unwrap()
    };
    assert_eq!((count("sessions-established"), count("associations"), count("peer-restarts")), (1, 1, 0));
    assert_eq!(lab.drops("unknown-teid"), 0);
    lab.end();
}

/// The data network's host never speaks first, and which worker its answer reaches is the kernel's choice.
#[test]
fn several_workers_find_everybody() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    for workers in ["2", "3"] {
        let lab = Lab::start("workers", &["--workers", workers]);
        for family in ["-4", "-6"] {
            let said = lab.ue(&format!("ping {family} -c 3 -W 5 dn"));
            assert!(said.contains("3 received"), "{workers} workers: {said}{}", lab.drops_text());
        }
        lab.end();
    }
}

#[test]
fn a_hundred_megabytes_arrive_as_they_were_sent() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("curl", &[]);
    let directory = Directory::new("curl");
    let file = directory.0.join("bytes");
    let expected = lab::web::pattern(100_000_000);
    for family in ["-4", "-6"] {
        let start = Instant::now();
        lab.ue(&format!("curl -sS --fail {family} -o {} http://dn/bytes/100000000", file.display()));
        println!("curl {family}: 100 MB in {:.1} s", start.elapsed().as_secs_f64());
        // Not with assert_eq!, which would print both.
        assert!(std::fs::read(&file).unwrap() == expected, "what arrived is not what was sent");
    }
    lab.end();
}

#[test]
fn the_data_network_sees_public_addresses_only() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("nat", &["--nat"]);
    // Whoever is to be reached by a private address is not reached any more; public IPv4 addresses are found by ARP.
    lab.run_in("dn", "ip route del 10.45.0.0/16; ip -6 route del 2001:db8:45::/48");
    let expected = lab::web::pattern(3_000_000);
    for family in ["-4", "-6"] {
        lab.ue(&format!("ping -c 3 -W 5 {family} dn"));
        let directory = Directory::new("nat");
        let file = directory.0.join("bytes");
        lab.ue(&format!("curl -sS --fail {family} -o {} http://dn/bytes/3000000", file.display()));
        assert!(std::fs::read(&file).unwrap() == expected, "what arrived is not what was sent");
    }
    // In fragments, both ways.
    lab.ue("ping -c 2 -W 5 -4 -s 4000 dn");
    let seen = lab.run_in("dn", "ip -4 neigh show dev n6");
    assert!(
        seen.lines().any(|line| line.starts_with("203.0.113.") && !line.starts_with("203.0.113.1 ")),
        "{seen}"
    );
    let nat = lab.ctl("nat");
    let pool = &nat["pools"][0];
    // Pings and connections: each from an endpoint of its own, all in one block.
    assert_eq!((&pool["pool"], &pool["blocks_used"]), (&"lab".into(), &1.into()), "{nat}");
    assert!(pool["mappings"].as_u64().unwrap() >= 3, "{nat}");
    let log = std::fs::read_to_string(format!("/run/millrace/lab-{}/nat.jsonl", lab.name)).unwrap();
    assert!(log.starts_with(r#"{"time":""#) && log.contains(r#""event":"block-allocated""#), "{log}");
    assert!(log.contains(r#""event":"mapping-created""#) && log.contains(r#""protocol":"tcp""#), "{log}");
    lab.end();
}

#[test]
fn a_data_network_may_leave_checksums_to_its_cable() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("csum", &[]);
    // As a veth is, before anybody turns it off; the radio side is the gNB's own kernel, whose tunnels are UDP.
    lab.run_in("dn", "ethtool -K n6 tx on tso off gso off");
    lab.run_in("ran", "ethtool -K n3 tx on tso off gso off");
    let features = lab.run_in("dn", "ethtool -k n6");
    assert!(features.contains("tx-checksumming: on"), "{features}");
    for family in ["-4", "-6"] {
        let got = lab.ue(&format!("curl -sS --fail --max-time 60 {family} http://dn/bytes/1000000 | wc -c"));
        assert_eq!(got.trim(), "1000000");
    }
    let errors: u64 = lab.ctl("ports")["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["rx_errors"].as_u64().unwrap())
        .sum();
    assert_eq!(errors, 0, "nothing was too long");
    lab.end();
}

#[test]
fn several_ues_reach_the_network_and_each_other() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("ues", &["--ues", "3"]);
    assert!(lab.banner.contains("Another UE is ue2"), "{}", lab.banner);
    let mut seen = Vec::new();
    for namespace in ["ran", "ue1", "ue2"] {
        for family in ["-4", "-6"] {
            lab.run_in(namespace, &format!("ping -c 2 -i 0.2 -W 5 {family} dn"));
            // From UE to UE: up one session and down another.
            for other in ["ue0", "ue1", "ue2"] {
                lab.run_in(namespace, &format!("ping -c 2 -i 0.2 -W 5 {family} {other}"));
            }
        }
        let got = lab.run_in(namespace, "curl -sS --fail http://dn/bytes/1000000 | wc -c");
        assert_eq!(got.trim(), "1000000");
        seen.push(lab.run_in(namespace, "ip -4 -brief address show scope global | grep ^ue"));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(lab.ctl("sessions")["total"], 3);
    // The other way, by name.
    lab.run_in("dn", "ping -c 1 -W 5 -4 ue2 && ping -c 1 -W 5 -6 ue1");
    lab.end();
}

/// What the receiver of an `iperf3 --json` run saw: bits per second, datagrams, lost datagrams.
fn iperf3(lab: &Lab, args: &str) -> (f64, u64, u64) {
    let report: serde_json::Value =
        serde_json::from_str(&lab.ue(&format!("iperf3 --json -c dn -t 3 {args}"))).unwrap();
    let end = &report["end"];
    if args.contains("-u") {
        let sum = &end["sum"];
        let count = |key: &str| sum[key].as_u64().unwrap();
        (sum["bits_per_second"].as_f64().unwrap(), count("packets"), count("lost_packets"))
    } else {
        (end["sum_received"]["bits_per_second"].as_f64().unwrap(), 0, 0)
    }
}

#[test]
fn iperf3_both_ways() {
    if lacking(&["iperf3"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("iperf", &[]);
    for direction in ["-4", "-4 -R", "-6", "-6 -R"] {
        let (rate, _, _) = iperf3(&lab, direction);
        println!("TCP {direction}: {:.0} Mbit/s", rate / 1e6);
        assert!(rate > 0.0, "TCP {direction}: {rate} bit/s");
        let before = lab.lost_by_the_kernel();
        let (rate, packets, lost) = iperf3(&lab, &format!("{direction} -u -b 20M -l 1200"));
        let by_the_kernel = lab.lost_by_the_kernel() - before;
        println!(
            "UDP {direction}: {:.0} Mbit/s, {lost} of {packets} lost, {by_the_kernel} by the kernel",
            rate / 1e6
        );
        assert!(packets > 0, "UDP {direction}");
        // By Millrace, none. What the kernel loses can't be told from others' packets.
        assert!(
            lost <= by_the_kernel,
            "UDP {direction}: {lost} of {packets}, {by_the_kernel} by the kernel\n{}",
            lab.drops_text()
        );
    }
    lab.end();
}

#[test]
fn path_mtu_is_found_by_both_sides() {
    if lacking(&["curl"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("mtu", &[]);
    let [v4, v6] = lab.ue_addresses();
    // The UE sends what its interface takes, and no more.
    lab.ue(&format!("ping -c 2 -W 5 -M do -s {} -4 dn", UE_MTU - 28));
    lab.ue(&format!("ping -c 2 -W 5 -M do -s {} -6 dn", UE_MTU - 48));
    let refused = said(&lab.try_in("ran", &format!("ping -c 1 -W 1 -M do -s {} -4 dn", UE_MTU - 27)));
    assert!(refused.contains(&format!("mtu={UE_MTU}")), "{refused}");

    // The data network learns what fits through the tunnel from Millrace.
    let fits = LINK_MTU - TUNNEL;
    let told = said(&lab.try_in("dn", &format!("ping -c 2 -W 1 -M do -s {} {v4}", LINK_MTU - 28)));
    assert!(
        told.contains("203.0.113.1") && told.contains(&format!("mtu = {fits}")),
        "{told}\n{}",
        lab.drops_text()
    );
    let told = said(&lab.try_in("dn", &format!("ping -c 2 -W 1 -M do -s {} {v6}", LINK_MTU - 48)));
    assert!(
        told.contains("too big: mtu") && told.contains(&fits.to_string()),
        "{told}\n{}",
        lab.drops_text()
    );
    lab.awaits_drops("packet-too-big", 2);
    lab.run_in(
        "dn",
        &format!("ip route flush cache; ip -6 route flush cache; ping -c 2 -W 5 -M do -s {} {v4}", fits - 28),
    );
    lab.run_in("dn", &format!("ping -c 2 -W 5 -M do -s {} {v6}", fits - 48));

    // TCP with segments that fit no tunnel: downlink they must shrink, uplink the gNB fragments what it sends to N3.
    lab.ue(&format!("ip link set ue0 mtu {LINK_MTU}"));
    lab.run_in("dn", "ip route flush cache; ip -6 route flush cache");
    let before = lab.drops("packet-too-big");
    for family in ["-4", "-6"] {
        let got = lab.ue(&format!("curl -sS --fail {family} http://dn/bytes/20000000 | wc -c"));
        assert_eq!(got.trim(), "20000000");
        lab.ue(&format!("ping -c 2 -W 5 -s {} {family} dn", LINK_MTU - 48));
    }
    // Some segments were too big.
    lab.awaits_drops("packet-too-big", before + 1);
    lab.end();
}

#[test]
fn fragments_pass_both_ways() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("frag", &[]);
    // Over IPv6 only the sender makes fragments: the data network first has to learn what fits through the tunnel.
    lab.try_in("ran", &format!("ping -c 1 -W 1 -s {LINK_MTU} -6 dn"));
    // `ping` itself is content with one answer.
    let all_return = |namespace: &str, args: &str| {
        let report = lab.run_in(namespace, &format!("ping -c 3 -i 0.2 -W 5 {args}"));
        assert!(report.contains(" 3 received"), "{args}: {report}{}", lab.drops_text());
    };
    for size in [1500, 4000, 20000] {
        all_return("ran", &format!("-s {size} -4 dn"));
        all_return("ran", &format!("-s {size} -6 dn"));
    }
    for address in lab.ue_addresses() {
        all_return("dn", &format!("-s 4000 {address}"));
    }
    assert_eq!(lab.drops("malformed"), 0, "{}", lab.drops_text());
    lab.end();
}

/// Sends an IP packet through an interface without asking the kernel's routing: an ICMP echo request.
const CRAFT: &str = r#"
import socket, struct, sys
source, target = (socket.inet_aton(a) for a in sys.argv[1:3])
def summed(b):
    s = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
icmp = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
icmp = icmp[:2] + struct.pack("!H", summed(icmp)) + icmp[4:]
head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(icmp), 1, 0, 64, 1, 0) + source + target
head = head[:10] + struct.pack("!H", summed(head)) + head[12:]
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0800)
for _ in range(5): s.sendto(head + icmp, ("ue0", 0x0800))
"#;

#[test]
fn a_ue_reaches_neither_others_nor_the_upf_itself() {
    if lacking(&["python3"]) {
        return;
    }
    let _alone = alone();
    let lab = Lab::start("drops", &[]);
    let directory = Directory::new("drops");
    let script = directory.0.join("craft.py");
    std::fs::write(&script, CRAFT).unwrap();
    let [v4, v6] = lab.ue_addresses();
    let craft = |source: &str, target: &str| {
        lab.ue(&format!("python3 {} {source} {target}", script.display()));
    };
    let grows = |lab: &Lab, reason: &str, from: u64, by: u64| lab.awaits_drops(reason, from + by);
    assert_eq!(lab.drops("spoofed-source") + lab.drops("own-address"), 0, "{}", lab.drops_text());

    craft("10.45.77.77", "203.0.113.2");
    grows(&lab, "spoofed-source", 0, 5);
    let output = lab.try_in(
        "ran",
        "ip -6 address add 2001:db8:77::1/128 dev lo && ping -6 -c 3 -i 0.2 -W 1 -I 2001:db8:77::1 dn",
    );
    assert!(!output.status.success());
    grows(&lab, "spoofed-source", 5, 3);

    // N3, N4, N6; N3 and N6 over IPv6. None of them answers.
    for target in ["192.0.2.1", "198.51.100.1", "203.0.113.1"] {
        let from = lab.drops("own-address");
        craft(&v4, target);
        grows(&lab, "own-address", from, 5);
    }
    for target in ["2001:db8:3::1", "2001:db8:6::1"] {
        let from = lab.drops("own-address");
        assert!(
            !lab.try_in("ran", &format!("ping -6 -c 3 -i 0.2 -W 1 -I ue0 -I {v6} {target}")).status.success()
        );
        grows(&lab, "own-address", from, 3);
    }
    // And the session still works.
    lab.ue("ping -c 1 -W 5 dn");
    lab.end();
}

#[test]
fn tshark_finds_nothing_wrong() {
    if lacking(&["tshark", "curl", "python3"]) {
        return;
    }
    let _alone = alone();
    let directory = Directory::new("capture");
    let to = directory.0.to_str().unwrap();
    let lab = Lab::start("judge", &["--capture", to, "--smf", "open5gs"]);
    let [v4, v6] = lab.ue_addresses();
    for family in ["-4", "-6"] {
        lab.ue(&format!("ping -c 3 -i 0.2 -W 5 {family} dn && ping -c 2 -i 0.2 -W 5 -s 4000 {family} dn"));
        lab.ue(&format!("curl -sS --fail -o /dev/null {family} http://dn/bytes/1000000"));
    }
    // Answers that Millrace makes itself: echo, frag needed, packet too big, an error indication.
    lab.run_in("ran", "ping -c 1 -W 5 -4 upf-n3 && ping -c 1 -W 5 -6 upf-n3");
    lab.run_in("dn", "ping -c 1 -W 5 -4 upf-n6 && ping -c 1 -W 5 -6 upf-n6");
    for (address, headers) in [(&v4, 28), (&v6, 48)] {
        let size = LINK_MTU - headers;
        assert!(!lab.try_in("dn", &format!("ping -c 1 -W 1 -M do -s {size} {address}")).status.success());
    }
    // A G-PDU for a tunnel that nobody has, from a port that is not the gNB's.
    let stray = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                 s.sendto(bytes.fromhex('30ff0014deadbeef4500001400000000403b347f0a2d0001cb007102'), ('192.0.2.1', 2152))";
    lab.run_in("ran", &format!("python3 -c \"{stray}\""));
    std::thread::sleep(Duration::from_millis(300));
    lab.end();

    let tshark = |file: &str, filter: &str| {
        let path = ["pcapng", "pcap"]
            .iter()
            .map(|end| directory.0.join(format!("{file}.{end}")))
            .find(|p| p.exists());
        // On the loopback interface, N4's, the kernel leaves UDP's checksum out.
        let on = if file == "n4" { "FALSE" } else { "TRUE" };
        let checked = ["ip", "udp", "tcp"].map(|protocol| format!("-o{protocol}.check_checksum:{on}"));
        let output = Command::new("tshark")
            .arg("-r")
            .arg(path.unwrap())
            .args(checked)
            .args(["-Y", filter])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    // An error's severity is 0x800000 (epan/proto.h).
    for file in ["n3", "n4", "n6"] {
        let wrong = tshark(file, "_ws.malformed || _ws.expert.severity >= 0x800000");
        assert_eq!(wrong, "", "{file}");
    }
    let count = |file: &str, filter: &str| tshark(file, filter).lines().count();
    let least = [
        ("n3", "gtp.message == 0xff && ip.src == 192.0.2.1 && gtp.ext_hdr.pdu_ses_con.pdu_type == 0", 500),
        ("n3", "gtp.message == 0xff && ip.dst == 192.0.2.1", 50),
        ("n3", "gtp.message == 0x1a && ip.src == 192.0.2.1", 1),
        ("n6", "icmp.type == 3 && icmp.code == 4", 1),
        ("n6", "icmpv6.type == 2", 1),
        // Association and session: set up, established, modified, deleted, released; and all answered with success.
        ("n4", "pfcp.cause == 1", 5),
    ];
    for (file, filter, least) in least {
        let found = count(file, filter);
        assert!(found >= least, "{file}: {filter}: {found} packets, at least {least} were expected");
    }
    assert_eq!(count("n4", "pfcp.cause > 1"), 0);
    // Nothing is missing at the end either.
    for file in ["n3", "n4", "n6"] {
        assert_eq!(count(file, "udp.dstport == 9"), 1, "{file}");
    }
    assert!(directory.0.join("upf.log").exists());
}

#[test]
fn nothing_survives_sigkill() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let mut lab = Lab::start("kill", &[]);
    let namespace = format!("{}-ran", lab.name);
    let mut lingering = Command::new("ip")
        .args(["netns", "exec", &namespace, "sleep", "600"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    assert!(left_of(&lab.name).len() >= 8, "{:?}", left_of(&lab.name));
    lab.signal("KILL");
    lab.child.wait().unwrap();
    let until = Instant::now() + Duration::from_mins(2);
    while !left_of(&lab.name).is_empty() {
        assert!(Instant::now() < until, "left: {:?}", left_of(&lab.name));
        // Until it is waited for, what was killed is a process still.
        let _ = lingering.try_wait();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(lingering.wait().unwrap().code(), None, "killed");
}

#[test]
fn the_lab_tells_when_its_upf_dies() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let mut lab = Lab::start("dies", &[]);
    let pid = lab.ctl("version")["pid"].as_u64().unwrap();
    assert!(Command::new("sh").args(["-c", &format!("kill -KILL {pid}")]).status().unwrap().success());
    assert_eq!(lab.child.wait().unwrap().code(), Some(1));
    assert_eq!(left_of(&lab.name), Vec::<String>::new());
}

#[test]
fn every_smf_s_session_carries_traffic() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    for habit in lab::Habit::ALL {
        let name = format!("t{}-{}", std::process::id(), habit.name());
        let has_v6 = matches!(habit, lab::Habit::Plain | lab::Habit::Open5gs);
        let script = format!(
            "ping -c 3 -i 0.2 -W 5 -4 dn{}",
            if has_v6 { " && ping -c 3 -i 0.2 -W 5 -6 dn" } else { "" }
        );
        let args = ["lab", "--name", &name, "--smf", habit.name(), "run", "--", "sh", "-c", &script];
        let output = millrace(&args).output().unwrap();
        assert!(output.status.success(), "{}: {}", habit.name(), said(&output));
        let expected = if has_v6 { 2 } else { 1 };
        assert_eq!(said(&output).matches("3 received").count(), expected, "{}", habit.name());
    }
}

#[test]
fn af_xdp_carries_traffic() {
    if lacking(&[]) {
        return;
    }
    let _alone = alone();
    let name = format!("t{}-xdp", std::process::id());
    let script = "ping -c 3 -i 0.2 -W 5 -4 dn && ping -c 3 -i 0.2 -W 5 -s 3000 -6 dn";
    let args = ["lab", "--name", &name, "--driver", "af-xdp", "run", "--", "sh", "-c", script];
    let output = millrace(&args).output().unwrap();
    let said = said(&output);
    if said.contains("the UPF failed") && said.contains("net_af_xdp") {
        return testing::skipped(said);
    }
    assert!(output.status.success(), "{said}");
}

#[test]
fn what_can_t_be_done_is_said() {
    let ends = |args: &[&str], code: i32, words: &str| {
        let output = millrace(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    };
    ends(&["lab", "--name", "a/b", "run", "--", "true"], 2, "can't name a lab");
    ends(&["lab", "--driver", "tap"], 2, "use af-packet or af-xdp");
    ends(&["lab", "--smf", "nobody"], 2, "no SMF that can be imitated");
    ends(&["lab", "--ues", "17"], 2, "1..=16");
    ends(&["lab", "attack", "shouting"], 2, "fragments6-n3");
    ends(&["lab", "run", "--", "no-such-program"], 127, "no-such-program");
    if lacking(&["setpriv"]) {
        return;
    }
    let _alone = alone();
    let name = format!("t{}-taken", std::process::id());
    let taken = format!("{name}-dn");
    let ip = |args: &[&str]| assert!(Command::new("ip").args(args).status().unwrap().success());
    ip(&["netns", "add", &taken]);
    ends(&["lab", "--name", &name, "run", "--", "true"], 1, &taken);
    assert!(Path::new("/run/netns").join(&taken).exists(), "it is somebody else's");
    ip(&["netns", "delete", &taken]);
    assert_eq!(left_of(&name), Vec::<String>::new());

    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(binary())
        .args(["lab", "run", "--", "true"])
        .output()
        .unwrap();
    if said(&output).contains("setpriv: ") {
        return testing::skipped(format!("another user can't run the binary: {}", said(&output)));
    }
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("needs root"), "{}", said(&output));
}
