//! What passes a port, in a network namespace of its own.
#![allow(clippy::unwrap_used)]

use crate::{ends, millrace};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

#[test]
fn a_port_is_inspected_until_somebody_ends_it() {
    testing::in_namespace("live_body");
}

fn sh(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by `a_port_is_inspected_until_somebody_ends_it` in a namespace of its own"]
fn live_body() {
    sh("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
        ip link add here type veth peer name there
        ip link set here up; ip link set there up
        ip address add 10.0.0.1/24 dev there
        ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:09 dev there");
    let socket = UdpSocket::bind("10.0.0.1:40000").unwrap();
    let ask = || {
        let question = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
        socket.send_to(question, "10.0.0.2:53").unwrap();
    };
    let promiscuous = || {
        let output = Command::new("ip").args(["link", "show", "here"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains("PROMISC")
    };
    let before = promiscuous();
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["dpi", "-i", "here", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let mut look = next();
    for _ in 0..20 {
        (0..5).for_each(|_| ask());
        look = next();
        if look["total"]["packets"].as_u64().unwrap() >= 5 {
            break;
        }
    }
    assert_eq!((&look["is_last"], &look["flows_going_on"]), (&false.into(), &1.into()), "{look}");
    assert_eq!(
        (&look["names"][0]["name"], &look["port"]["port"]),
        (&"www.example.org".into(), &"here".into())
    );
    assert_eq!(look["protocols"][0]["protocol"], "DNS", "before there is a verdict: {look}");
    // What the machine itself sends by the interface is seen, too.
    sh("ip address add 10.0.1.1/24 dev here; ip neighbour add 10.0.1.2 lladdr 02:00:00:00:00:08 dev here");
    let own = UdpSocket::bind("10.0.1.1:40001").unwrap();
    for _ in 0..20 {
        own.send_to(b"hello", "10.0.1.2:9999").unwrap();
        look = next();
        if look["flows_going_on"] == 2 {
            break;
        }
    }
    assert_eq!(look["flows_going_on"], 2, "{look}");
    sh(&format!("kill -INT {}", child.id()));
    let last = std::iter::from_fn(|| Some(next())).find(|it| it["is_last"] == true).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        (&last["port"]["missed"], &last["protocols"][0]["protocol"]),
        (&0.into(), &"DNS".into()),
        "{last}"
    );
    assert!(last["port"]["received"].as_u64() >= last["totals"]["frames"].as_u64(), "{last}");
    assert!(!before && !promiscuous(), "the interface is left as it was");
    // As long as was asked for, and then the tables.
    let (page, _) = ends(&millrace(&["dpi", "-i", "net_af_packet0,iface=here", "--seconds", "1"]), 0);
    assert!(page.contains("port net_af_packet0,iface=here: 0 packets received, 0 missed"), "{page}");
    let (_, error) = ends(&millrace(&["dpi", "-i", "nowhere"]), 2);
    assert!(error.contains("`ip link` lists them"), "{error}");
    ends(&millrace(&["dpi", "-i", "here", "x.pcap"]), 2);
    let nobody = Command::new("setpriv")
        .args(["--reuid", "65534", "--clear-groups", env!("CARGO_BIN_EXE_millrace"), "dpi", "-i", "here"])
        .output()
        .unwrap();
    let (_, error) = ends(&nobody, 4);
    assert!(error.contains("root") && error.contains("CAP_NET_RAW"), "{error}");
}
