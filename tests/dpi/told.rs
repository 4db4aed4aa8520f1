//! What messages say, how flows fare, and who is named.
#![allow(clippy::unwrap_used)]

use crate::{connection, ends, millrace};
use io::pcap::CaptureWriter;
use loadgen::applications::{Length, Mix, Traffic};
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{MacAddr, PacketBuilder};
use serde_json::Value;
use std::process::Command;
use testing::Directory;

/// Frames with their times in milliseconds, as a capture.
fn written<'f>(
    directory: &Directory,
    name: &str,
    frames: impl IntoIterator<Item = (u64, &'f [u8])>,
) -> String {
    let path = directory.0.join(name);
    let mut writer = CaptureWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let interface = writer.interface("eth0").unwrap();
    for (millis, frame) in frames {
        let nanos = 1_700_000_000_000_000_000 + millis * 1_000_000;
        writer.write(interface, nanos, None, frame, None).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

/// What tshark says of these packets' fields: a line for each, sorted. `None`: there is no tshark.
fn tshark(file: &str, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", file, "-Y", filter, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        testing::skipped("tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    Some(lines)
}

fn report(args: &[&str]) -> Value {
    serde_json::from_str(&ends(&millrace(args), 0).0).unwrap()
}

/// Messages of a kind, with these of their fields, as tshark writes them.
fn messages(report: &Value, kind: &str, fields: &[&str]) -> Vec<String> {
    let flows = report["flows"].as_array().unwrap();
    let all = flows.iter().flat_map(|flow| flow["messages"].as_array().into_iter().flatten());
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(all) => all.first().and_then(Value::as_str).unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    let lines = all
        .filter(|it| it["kind"] == kind)
        .map(|it| fields.iter().map(|field| text(&it[field])).collect::<Vec<_>>().join("|"));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

#[test]
fn messages_say_what_tshark_says() {
    let directory = Directory::new("dpi");
    let traffic = Traffic::new(Mix::ORDINARY, Length::Whole, 6_000, 40, 7);
    let file = written(&directory, "mix.pcapng", (0..).zip(traffic.frames()));
    let report = report(&["dpi", &file, "--messages", "--json"]);
    for (filter, fields, kind, ours) in [
        (
            "http.request",
            &["http.request.method", "http.request.full_uri", "http.user_agent"][..],
            "http-request",
            &["method", "url", "agent"][..],
        ),
        (
            "http.response",
            &["http.response.code", "http.content_type"],
            "http-response",
            &["status", "content"],
        ),
        (
            "tls.handshake.type == 1",
            &["tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str"],
            "client-hello",
            &["host", "alpn"],
        ),
        ("dns.flags.response == 0", &["dns.id", "dns.qry.name"], "dns-question", &["id", "name"]),
        (
            "dns.flags.response == 1 && dns.a",
            &["dns.id", "dns.qry.name", "dns.a"],
            "dns-answer",
            &["id", "name", "answers"],
        ),
    ] {
        let Some(theirs) = tshark(&file, filter, fields) else { return };
        // tshark writes the number of a question in hexadecimal digits.
        let theirs = theirs.iter().map(|line| match line.strip_prefix("0x") {
            Some(line) => {
                let (id, rest) = line.split_once('|').unwrap();
                format!("{}|{rest}", u16::from_str_radix(id, 16).unwrap())
            }
            None => line.clone(),
        });
        let mut theirs: Vec<_> = theirs.collect();
        theirs.sort();
        let mut all = messages(&report, kind, ours);
        if kind == "dns-answer" {
            all.retain(|it| it.rsplit('|').next().unwrap().parse::<std::net::Ipv4Addr>().is_ok());
        }
        assert!(theirs.len() > 5, "{filter}: {} are too few to tell", theirs.len());
        assert_eq!(all, theirs, "{filter}");
    }
    let (csv, _) = ends(&millrace(&["dpi", &file, "--messages", "--csv"]), 0);
    assert!(csv.starts_with("at,flow,kind,message\r\n") && csv.contains(",client-hello,"), "{}", &csv[..200]);
}

/// A datagram between 10.0.0.7 and 198.51.100.1.
fn datagram(from_client: bool, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 7].into(), [198, 51, 100, 1].into());
    let frame = PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    if from_client {
        frame.ipv4(client, server).udp(ports.0, ports.1).build(payload)
    } else {
        frame.ipv4(server, client).udp(ports.1, ports.0).build(payload)
    }
}

/// The caller's number, and the one that is called.
const PARTIES: [&str; 2] = ["491512345678", "12015550123"];

/// A call of eight seconds, of which some packets are lost on the way up, and the page that the caller looked at.
fn call() -> Vec<(u64, Vec<u8>)> {
    let [caller, called] = PARTIES;
    let sip = |first: &str, method: &str, sdp: Option<(&str, u16)>| {
        let sdp = sdp.map_or_else(String::new, |(address, port)| {
            format!("v=0\r\nc=IN IP4 {address}\r\nm=audio {port} RTP/AVP 97\r\na=rtpmap:97 AMR/8000\r\n")
        });
        format!(
            "{first}\r\nVia: SIP/2.0/UDP 10.0.0.7\r\nFrom: \"{caller}\" <sip:+{caller}@ims.example;user=phone>;tag=1\r\n\
             To: <tel:+{called}>\r\nCall-ID: {caller}-1@10.0.0.7\r\nCSeq: 1 {method}\r\nUser-Agent: phone {caller}\r\n\
             Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
    };
    let target = format!("tel:+{called}");
    let invite = sip(&format!("INVITE {target} SIP/2.0"), "INVITE", Some(("10.0.0.7", 49_170)));
    let ports = (5060, 5060);
    let mut frames = vec![
        (0, datagram(true, ports, invite.as_bytes())),
        (100, datagram(false, ports, sip("SIP/2.0 180 Ringing", "INVITE", None).as_bytes())),
        (
            2000,
            datagram(
                false,
                ports,
                sip("SIP/2.0 200 OK", "INVITE", Some(("198.51.100.1", 50_000))).as_bytes(),
            ),
        ),
    ];
    for number in 0..400_u16 {
        let rtp = |source: u8| {
            let timestamp = (u32::from(number) * 160).to_be_bytes();
            [&[0x80, 97][..], &number.to_be_bytes(), &timestamp, &[0, 0, 0, source], &[0xd5; 32]].concat()
        };
        let at = 2000 + u64::from(number) * 20;
        // One of twenty is lost, and the other way wavers.
        if number % 20 != 7 {
            frames.push((at, datagram(true, (49_170, 50_000), &rtp(1))));
        }
        frames.push((at + u64::from(number % 3) * 4, datagram(false, (49_170, 50_000), &rtp(2))));
    }
    frames
        .push((10_000, datagram(true, ports, sip(&format!("BYE {target} SIP/2.0"), "BYE", None).as_bytes())));
    let get = format!("GET /?msisdn={caller} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: {caller}\r\n\r\n");
    let user = format!("GET http://{caller}:x@b.example/ HTTP/1.1\r\n\r\n");
    let page = connection(8080, &[(true, get.as_bytes()), (true, user.as_bytes())]);
    frames.extend((20_000..).zip(page));
    frames
}

#[test]
fn a_call_is_shown_with_its_parties_and_what_it_sounds_like() {
    let directory = Directory::new("dpi");
    let frames = call();
    let file = written(&directory, "call.pcapng", frames.iter().map(|(at, frame)| (*at, &frame[..])));
    let report = report(&["dpi", &file, "--json", "--per-flow"]);
    let call = &report["calls"][0];
    assert_eq!(call["from"], format!("sip:+{}@ims.example", PARTIES[0]));
    assert_eq!(call["to"], format!("tel:+{}", PARTIES[1]));
    assert_eq!(
        (&call["state"], &call["answered_after"], &call["lasted"]),
        (&"ended".into(), &2.0.into(), &8.0.into())
    );
    let media = call["media"].as_array().unwrap();
    let of = |from: &str, what: &str| media.iter().find(|it| it["from"] == from).unwrap()[what].clone();
    assert_eq!(
        (of("client", "codec"), of("client", "lost"), of("client", "packets")),
        ("AMR".into(), 20.into(), 380.into())
    );
    assert!(of("client", "mos").as_f64().unwrap() < of("server", "mos").as_f64().unwrap(), "{media:?}");
    assert!(report["kpis"].as_array().unwrap().iter().any(|it| it["kpi"] == "RTP MOS" && it["flows"] == 2));
    let (page, _) = ends(&millrace(&["dpi", &file]), 0);
    assert!(page.contains("ended") && page.contains("AMR 5.0 % lost"), "{page}");
    // tshark measures the same streams, if it is told the codec's clock by the same SDP.
    let output = Command::new("tshark").args(["-r", &file, "-q", "-z", "rtp,streams"]).output();
    let Ok(output) = output else { return testing::skipped("tshark is not installed") };
    let table = String::from_utf8(output.stdout).unwrap();
    for (source, from) in [("0x00000001", "client"), ("0x00000002", "server")] {
        let line = table.lines().find(|it| it.contains(source)).unwrap();
        let cells: Vec<_> = line.split_whitespace().collect();
        let at = cells.iter().position(|it| *it == source).unwrap();
        assert_eq!(cells[at + 2], of(from, "packets").to_string(), "{table}");
        assert_eq!(cells[at + 3], of(from, "lost").to_string(), "{table}");
        let most: f64 = cells[at + 10].parse().unwrap();
        assert!((of(from, "most_jitter_ms").as_f64().unwrap() - most).abs() < 0.1, "{media:?}\n{table}");
    }
}

#[test]
fn behind_a_mask_nobody_is_named() {
    let directory = Directory::new("dpi");
    let frames = call();
    let file = written(&directory, "call.pcapng", frames.iter().map(|(at, frame)| (*at, &frame[..])));
    let copy = directory.0.join("copy.pcapng");
    let copy = copy.to_str().unwrap();
    let call = "10.0.0.7:5060-198.51.100.1:5060";
    let page = "10.0.0.7:40000-198.51.100.1:8080";
    let mut outputs = Vec::new();
    for args in [
        &["dpi", &file, "--mask"][..],
        &["dpi", &file, "--mask", "--per-flow"],
        &["dpi", &file, "--mask", "--messages"],
        &["dpi", &file, "--mask", "--json", "--messages"],
        &["dpi", &file, "--mask", "--csv", "--messages"],
        &["dpi", &file, "--mask", "--csv", "--per-flow"],
        &["dpi", &file, "--mask", "--explain", call],
        &["dpi", &file, "--mask", "--explain", page],
        &["dpi", &file, "--mask", "--write", copy],
    ] {
        outputs.push((args.join(" "), ends(&millrace(args), 0).0));
    }
    if let Some(comments) = tshark(copy, "frame.comment", &["frame.comment"]) {
        assert!(comments.iter().any(|it| it.contains("sip method=INVITE")), "{comments:?}");
        outputs.push(("comments".to_owned(), comments.join("\n")));
    }
    for (what, text) in &outputs {
        for party in PARTIES {
            for length in [4, 6, party.len()] {
                assert!(!text.contains(&party[..length]), "{what}: {} in\n{text}", &party[..length]);
            }
        }
    }
    let letters = |text: &str| text.split("from=sip:").nth(1).unwrap().split('@').next().unwrap().to_owned();
    let messages = &outputs[2].1;
    let names: Vec<_> = messages.lines().filter(|it| it.contains(" sip ")).map(letters).collect();
    assert_eq!(names.len(), 4, "{messages}");
    assert!(
        names.iter().all(|it| *it == names[0] && it.bytes().all(|it| it.is_ascii_lowercase())),
        "{names:?}"
    );
    // Without it, all of these do name them.
    let (text, _) = ends(&millrace(&["dpi", &file, "--messages"]), 0);
    assert!(PARTIES.iter().all(|it| text.contains(it)), "{text}");
}

#[test]
fn quality_is_what_tshark_measures() {
    let directory = Directory::new("dpi");
    let (client, server) = ([10, 0, 0, 7], [198, 51, 100, 1]);
    let segment = |from_client: bool,
                   flags: TcpFlags,
                   sequence: u32,
                   acknowledgement: u32,
                   window: u16,
                   length: usize| {
        let (source, destination) = if from_client { (client, server) } else { (server, client) };
        let (source_port, destination_port) = if from_client { (40_000, 80) } else { (80, 40_000) };
        let header = TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window };
        PacketBuilder::new()
            .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
            .ipv4(source.into(), destination.into())
            .tcp(header)
            .build(&vec![7; length])
    };
    let ack = TcpFlags::ACK;
    let mut frames = vec![
        (0, segment(true, TcpFlags::SYN, 0, 0, 1000, 0)),
        (30, segment(false, TcpFlags::SYN.with(ack), 0, 1, 1000, 0)),
        (50, segment(true, ack, 1, 1, 1000, 0)),
    ];
    let mut at = 100;
    for round in 0..30_u32 {
        let next = 1 + round * 2000;
        // Each third time the first half is lost before us, and comes again; each fifth time the halves change places.
        let halves = match (round % 3, round % 5) {
            (0, _) => vec![(0, 1000), (200, 0)],
            (_, 0) => vec![(0, 1000), (1, 0)],
            _ => vec![(0, 0), (1, 1000)],
        };
        for (later, half) in halves {
            frames.push((at + later, segment(false, ack, next + half, 1, 1000, 1000)));
        }
        at += 220;
        let window = if round % 7 == 6 { 0 } else { 1000 + round as u16 };
        frames.push((at, segment(true, ack, 1, next + 2000, window, 0)));
        at += 20;
        if window == 0 {
            frames.push((at, segment(true, ack, 1, next + 2000, 900, 0)));
            at += 20;
        }
    }
    let file = written(&directory, "lossy.pcapng", frames.iter().map(|(at, frame)| (*at, &frame[..])));
    let report = report(&["dpi", &file, "--json", "--per-flow"]);
    let tcp = &report["flows"][0]["tcp"];
    assert_eq!(tcp["handshake_ms"], 50.0);
    for (filter, ours) in [
        ("tcp.analysis.retransmission && tcp.srcport == 80", "retransmissions_down"),
        ("tcp.analysis.out_of_order && tcp.srcport == 80", "out_of_order_down"),
        ("tcp.analysis.zero_window && tcp.srcport == 40000", "zero_windows_up"),
        ("tcp.analysis.duplicate_ack && tcp.srcport == 40000", "duplicate_acks_up"),
    ] {
        let Some(theirs) = tshark(&file, filter, &["frame.number"]) else { return };
        assert_eq!(tcp[ours], theirs.len(), "{ours}: {tcp}");
        assert!(!theirs.is_empty() || ours == "duplicate_acks_up", "{ours}");
    }
    let flow = &report["flows"][0];
    assert!(flow["best_bits_down"].as_u64().unwrap() > 8 * 4 * 2 * 1000, "{flow}");
    let line = &report["subscribers"][0];
    let (best, mean) =
        (line["best_bits_per_second"].as_u64().unwrap(), line["bits_per_second"].as_u64().unwrap());
    assert!(best > mean && mean > 0, "{line}");
    assert!(report["applications"][0]["best_bits_per_second"].as_u64().unwrap() > mean);
    let kpi =
        |name: &str| report["kpis"].as_array().unwrap().iter().find(|it| it["kpi"] == name).unwrap().clone();
    assert_eq!(kpi("TCP retransmissions")["total"], tcp["retransmissions_down"]);
    let (csv, _) = ends(&millrace(&["dpi", &file, "--csv", "--per-flow"]), 0);
    let [header, line] = csv.lines().collect::<Vec<_>>()[..] else { panic!("{csv}") };
    let cell =
        |name: &str| line.split(',').nth(header.split(',').position(|it| it == name).unwrap()).unwrap();
    assert_eq!(cell("retransmissions"), tcp["retransmissions_down"].to_string());
    assert_eq!(cell("handshake_ms"), "50");
}
