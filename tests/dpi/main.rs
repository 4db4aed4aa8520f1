//! `millrace dpi` as a user meets it.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "dpdk")]
mod live;
mod told;

use io::pcap::CaptureWriter;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{MacAddr, PacketBuilder};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use testing::Directory;

fn millrace(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millrace")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn ends(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    (stdout, stderr)
}

/// A connection of 10.0.0.7 with 198.51.100.1: who says what.
fn connection(port: u16, said: &[(bool, &[u8])]) -> Vec<Vec<u8>> {
    let (client, server) = ([10, 0, 0, 7], [198, 51, 100, 1]);
    let mut sequences = [1000, 2000];
    let mut segment = |from_client: bool, flags: TcpFlags, payload: &[u8]| {
        let (own, other) = if from_client { (0, 1) } else { (1, 0) };
        let (source, destination) = if from_client { (client, server) } else { (server, client) };
        let (source_port, destination_port) = if from_client { (40_000, port) } else { (port, 40_000) };
        let header = TcpHeader {
            source_port,
            destination_port,
            sequence: sequences[own],
            acknowledgement: sequences[other],
            flags,
            window: 1000,
        };
        sequences[own] += payload.len() as u32 + u32::from(flags.contains(TcpFlags::SYN));
        PacketBuilder::new()
            .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
            .ipv4(source.into(), destination.into())
            .tcp(header)
            .build(payload)
    };
    let mut frames = vec![
        segment(true, TcpFlags::SYN, b""),
        segment(false, TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0), b""),
        segment(true, TcpFlags::ACK, b""),
    ];
    frames.extend(said.iter().map(|(from_client, payload)| segment(*from_client, TcpFlags::ACK, payload)));
    frames
}

/// A capture of an SSH connection and of a page of youtube.com.
fn capture(directory: &Directory) -> String {
    let path = directory.0.join("some.pcapng");
    let mut writer = CaptureWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let interface = writer.interface("eth0").unwrap();
    let ssh = connection(2222, &[(true, b"SSH-2.0-example\r\n"), (false, b"SSH-2.0-other\r\n")]);
    let page = connection(
        8080,
        &[
            (true, b"GET /watch HTTP/1.1\r\nHost: www.youtube.com\r\nUser-Agent: test\r\n\r\n"),
            (false, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ],
    );
    for (number, frame) in (0..).zip(ssh.iter().chain(&page)) {
        let nanos = 1_700_000_000_000_000_000 + number * 100_000_000;
        writer.write(interface, nanos, None, frame, None).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_capture_is_summed_up() {
    let directory = Directory::new("dpi");
    let file = capture(&directory);
    let (page, _) = ends(&millrace(&["dpi", &file]), 0);
    for expected in
        ["10 packets of 2 flows of 1 subscribers", "SSH", "youtube", "www.youtube.com", "10.0.0.7"]
    {
        assert!(page.contains(expected), "no {expected} in\n{page}");
    }
    let (json, _) = ends(&millrace(&["dpi", &file, "--json", "--per-flow"]), 0);
    let report: Value = serde_json::from_str(&json).unwrap();
    let flow = |at: usize, what: &str| report["flows"][at][what].clone();
    assert_eq!(flow(0, "protocol"), "SSH");
    assert_eq!((flow(1, "protocol"), flow(1, "application")), ("HTTP".into(), "youtube".into()));
    assert_eq!((flow(1, "host"), flow(1, "confidence")), ("www.youtube.com".into(), "certain".into()));
    assert_eq!((flow(1, "packets_up"), flow(1, "packets_down")), (3.into(), 2.into()));
    let (csv, _) = ends(&millrace(&["dpi", &file, "--csv", "--per-flow"]), 0);
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.contains(",SSH,"), "{csv}");
    // Twice the same capture: the flows go on.
    let (page, _) = ends(&millrace(&["dpi", &file, &file]), 0);
    assert!(page.contains("20 packets of 2 flows"), "{page}");
}

#[test]
fn a_verdict_is_explained_packet_by_packet() {
    let directory = Directory::new("dpi");
    let file = capture(&directory);
    let (text, _) = ends(&millrace(&["dpi", &file, "--explain", "2"]), 0);
    for expected in ["HTTP: is", "host: www.youtube.com", "verdict: HTTP (certain", "youtube", "by the rule"]
    {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    let ends_of_it = "198.51.100.1:2222-10.0.0.7:40000";
    let (text, _) = ends(&millrace(&["dpi", &file, "--explain", ends_of_it]), 0);
    assert!(text.contains("SSH: is, having seen 17 octets"), "{text}");
    let (_, error) = ends(&millrace(&["dpi", &file, "--explain", "3"]), 2);
    assert!(error.contains("`--per-flow` lists 1 to 2"), "{error}");
    ends(&millrace(&["dpi", &file, "--explain", "x"]), 2);
}

#[test]
fn verdicts_are_written_beside_packets() {
    let directory = Directory::new("dpi");
    let file = capture(&directory);
    let copy = directory.0.join("copy.pcapng");
    ends(&millrace(&["dpi", &file, "--write", copy.to_str().unwrap()]), 0);
    let tshark = Command::new("tshark")
        .args(["-r", copy.to_str().unwrap(), "-Y", "frame.comment", "-T", "fields", "-e", "frame.number"])
        .args(["-e", "frame.comment"])
        .output();
    let Ok(tshark) = tshark else {
        testing::skipped("tshark is not installed");
        return;
    };
    let comments = String::from_utf8(tshark.stdout).unwrap();
    let lines: Vec<_> = comments.lines().collect();
    assert_eq!(lines.len(), 3, "{comments}");
    assert!(lines[0].starts_with("4\tSSH (certain"), "{comments}");
    assert!(lines[1].contains("youtube") && lines[1].contains("http-request number=1"), "{comments}");
    assert!(lines[2].contains("http-response number=1 status=200"), "{comments}");
}

#[test]
fn what_cannot_be_read_is_told_with_what_was_read() {
    let directory = Directory::new("dpi");
    let file = capture(&directory);
    let (_, error) = ends(&millrace(&["dpi", "/nonexistent.pcap"]), 2);
    assert!(error.contains("/nonexistent.pcap"), "{error}");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.extend_from_slice(&[0; 64]);
    let damaged = directory.0.join("damaged.pcapng");
    std::fs::write(&damaged, bytes).unwrap();
    let (page, error) = ends(&millrace(&["dpi", damaged.to_str().unwrap()]), 1);
    assert!(page.contains("10 packets") && error.contains("can't be read any further"), "{page}{error}");
}

#[test]
fn signatures_are_checked_built_listed_tested_and_imported() {
    let directory = Directory::new("signatures");
    let path = |name: &str| directory.0.join(name).to_str().unwrap().to_owned();
    let own = path("own.toml");
    let text = "[intranet]\nname = \"Intranet\"\ncategory = \"productivity\"\nhosts = [\"corp.example\"]\n";
    std::fs::write(&own, text).unwrap();
    let (checked, _) = ends(&millrace(&["dpi", "signatures", "check", &own]), 0);
    assert!(checked.contains("right"), "{checked}");
    let (tested, _) = ends(&millrace(&["dpi", "signatures", "test", "wiki.corp.example", "--with", &own]), 0);
    assert!(tested.contains("intranet (productivity)") && tested.contains("own.toml:4"), "{tested}");
    ends(&millrace(&["dpi", "signatures", "test", "wiki.corp.example"]), 1);
    let (listed, _) = ends(&millrace(&["dpi", "signatures", "list", "youtube"]), 0);
    assert!(listed.contains("youtube"), "{listed}");
    let all = path("all.bundle");
    ends(&millrace(&["dpi", "signatures", "build", &own, "--output", &all]), 0);
    assert!(std::fs::metadata(&all).unwrap().len() > 1000);
    std::fs::write(path("hosts"), "0.0.0.0 ads.example\n").unwrap();
    let import = [
        "dpi",
        "signatures",
        "import",
        "hosts",
        &path("hosts"),
        "--application",
        "ads",
        "--category",
        "advertising",
    ];
    let (imported, _) = ends(&millrace(&import), 0);
    assert!(imported.contains("ads.example"), "{imported}");
    std::fs::write(&own, "[intranet]\ncategory = \"nonsense\"\n").unwrap();
    let (_, error) = ends(&millrace(&["dpi", "signatures", "check", &own]), 2);
    assert!(error.contains("nonsense"), "{error}");
}
