#![allow(clippy::unwrap_used)]

use super::*;
use crate::classify::{Carrier, Sheet, Side};
use crate::protocols::show::{client, flow, server};

fn request(text: &str) -> (Answer, Sheet) {
    let (mut answers, sheet) = flow(Protocol::Http, Carrier::Tcp, 8123, &[(Side::Client, text.as_bytes())]);
    (answers.remove(0), sheet)
}

const GET: &str = "GET /a/b?c=d HTTP/1.1\r\nUser-Agent: test/1.0 (x)\r\nhOST:  www.example.org \r\n\r\n";

#[test]
fn a_request_names_the_server_and_what_is_asked_for() {
    let (answer, sheet) = request(GET);
    assert_eq!(answer, Answer::Is);
    assert_eq!(sheet.host.bytes(), b"www.example.org");
    assert_eq!(sheet.agent.bytes(), b"test/1.0 (x)");
    assert_eq!(sheet.path.bytes(), b"/a/b?c=d");
}

#[test]
fn cut_off_anywhere_more_is_asked_for() {
    for length in 1..GET.len() {
        assert_eq!(
            client(Protocol::Http, Carrier::Tcp, 80, &GET.as_bytes()[..length]),
            Answer::Longer,
            "{length}"
        );
    }
    let endless = format!("GET / HTTP/1.1\r\nHost: a.example\r\nX: {}", "x".repeat(MOST));
    let (answer, sheet) = request(&endless);
    assert_eq!((answer, sheet.host.bytes()), (Answer::Is, &b"a.example"[..]));
}

#[test]
fn what_only_looks_like_it_is_not() {
    for text in [
        "Gets / HTTP/1.1\r\n\r\n",
        "GETS /",
        "OPTIONS rtsp://a RTSP/1.0\r\n\r\n",
        "GET / HTTP/2.1\r\n\r\n",
        "OPTIONS sip:a@b SIP/2.0\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\n\r\n",
        "GET \u{1}",
        "GET key\r\n",
        "HELO there\r\n",
        "PUT key value\r\n",
    ] {
        assert_eq!(request(text).0, Answer::No, "{text:?}");
    }
    assert_eq!(request("GET /index.html\r\n").0, Answer::Perhaps);
}

#[test]
fn protocols_over_http_are_told_by_method_type_or_path() {
    let post =
        |kind: &str, body: &str| format!("POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\n\r\n{body}");
    for (text, protocol) in [
        (post("application/ocsp-request", ""), Protocol::Ocsp),
        (post("application/ipp", ""), Protocol::Ipp),
        (post("application/soap+xml; charset=utf-8", ""), Protocol::Soap),
        (post("application/json", "{\"jsonrpc\": \"2.0\"}"), Protocol::JsonRpc),
        (post("application/dns-message", ""), Protocol::Doh),
        ("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n".into(), Protocol::WebDav),
        ("GET /v/master.m3u8?t=1 HTTP/1.1\r\nHost: a\r\n\r\n".into(), Protocol::Hls),
        ("GET /v/a.mpd HTTP/1.1\r\nHost: a\r\n\r\n".into(), Protocol::Dash),
        ("GET /chat HTTP/1.1\r\nUpgrade: WebSocket\r\nHost: a\r\n\r\n".into(), Protocol::WebSocket),
        ("SSTP_DUPLEX_POST /sra_x/ HTTP/1.1\r\nHost: a\r\n\r\n".into(), Protocol::Sstp),
        ("GET http://a.example/ HTTP/1.0\r\n\r\n".into(), Protocol::HttpProxy),
    ] {
        assert_eq!(request(&text).0, Answer::Other(protocol), "{text}");
    }
    assert_eq!(request(&post("application/json", "{\"a\": 1}")).0, Answer::Is);
    let (_, sheet) = request("GET http://a.example:8080/p?q HTTP/1.0\r\nHost: proxy\r\n\r\n");
    assert_eq!((sheet.host.bytes(), sheet.path.bytes()), (&b"a.example"[..], &b"/p?q"[..]));
}

#[test]
fn an_answer_says_what_is_sent() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\nx";
    let (answers, sheet) = flow(Protocol::Http, Carrier::Tcp, 80, &[(Side::Server, text)]);
    assert_eq!((answers, sheet.content.bytes()), (vec![Answer::Open], &b"video/mp4"[..]));
    for length in 1..text.len() - 1 {
        assert_eq!(server(Protocol::Http, Carrier::Tcp, 80, &text[..length]), Answer::Longer);
    }
    assert_eq!(server(Protocol::Http, Carrier::Tcp, 80, b"HTTP/1.1 abc\r\n"), Answer::No);
}

#[test]
fn a_tunnel_begins_when_the_proxy_agrees() {
    let ask = b"CONNECT www.example.org:443 HTTP/1.1\r\nHost: www.example.org:443\r\n\r\n";
    let of = |answer: &[u8]| {
        flow(Protocol::HttpConnect, Carrier::Tcp, 3128, &[(Side::Client, ask), (Side::Server, answer)]).0
    };
    assert_eq!(of(b"HTTP/1.1 200 Connection established\r\n\r\n"), [Answer::Open, Answer::Within(39)]);
    assert_eq!(of(b"HTTP/1.1 407 No\r\n\r\n"), [Answer::Open, Answer::Is]);
    assert_eq!(of(b"HTTP/1.1 200 Conn"), [Answer::Open, Answer::Longer]);
    assert_eq!(server(Protocol::HttpConnect, Carrier::Tcp, 3128, b"HTTP/1.1 200 OK\r\n\r\n"), Answer::No);
    for length in 1..ask.len() {
        assert_eq!(client(Protocol::HttpConnect, Carrier::Tcp, 3128, &ask[..length]), Answer::Longer);
    }
}

#[test]
fn ports_are_no_part_of_names() {
    for (said, host) in
        [("a.b:80", "a.b"), ("a.b", "a.b"), ("[::1]:80", "::1"), ("::1", "::1"), ("u:p@a.b:8", "a.b")]
    {
        assert_eq!(without_port(said.as_bytes()), host.as_bytes(), "{said}");
    }
}

#[test]
fn all_fields_can_be_read() {
    let request = Request::parse(GET.as_bytes()).unwrap();
    assert_eq!((request.method, request.target, request.minor), (&b"GET"[..], &b"/a/b?c=d"[..], 1));
    assert_eq!(request.host(), Some(&b"www.example.org"[..]));
    assert_eq!(request.fields.iter().count(), 2);
    assert_eq!(request.fields.body(), Some(&b""[..]));
    let response = Response::parse(b"HTTP/1.0 404 Not here\nA: b\n\nbody").unwrap();
    assert_eq!((response.status, response.minor, response.fields.get(b"a")), (404, 0, Some(&b"b"[..])));
    assert_eq!(response.fields.body(), Some(&b"body"[..]));
}
