//! Signatures as a whole.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::classify::Carrier;

fn built(files: &[&str]) -> Bundle {
    let mut builder = Builder::new();
    for (index, text) in files.iter().enumerate() {
        if index > 0 {
            builder.next_layer();
        }
        builder.read(&format!("{index}.toml"), text);
    }
    builder.build().unwrap_or_else(|findings| panic!("{findings}")).bundle
}

/// Who has it, and the rule.
fn whose(bundle: &Bundle, found: Option<Match>) -> String {
    found.map_or_else(String::new, |found| {
        format!("{} {}", bundle.application(found.application).name, bundle.rule(found.rule).unwrap().text)
    })
}

#[test]
fn what_is_built_in_has_nothing_wrong() {
    match Bundle::build_built_in() {
        Ok(built) => assert!(built.warnings.is_empty(), "{}", built.warnings),
        Err(findings) => panic!("{findings}"),
    }
}

#[test]
fn the_longest_suffix_wins() {
    let bundle = built(&[r#"
        category = "web"
        [site]
        hosts = ["example.com", "=exact.example.org", "media-*.cdn.example.net"]
        [upload]
        hosts = ["upload.example.com", "=example.com", "*.up*.cdn.example.net", "media-1.cdn.example.net"]
    "#]);
    for (host, expected) in [
        ("www.example.com", "site example.com"),
        ("EXAMPLE.com", "upload =example.com"),
        ("example.com.", "upload =example.com"),
        ("example.com:8443", "upload =example.com"),
        ("a.b.Upload.Example.Com:443", "upload upload.example.com"),
        ("notexample.com", ""),
        ("exact.example.org", "site =exact.example.org"),
        ("not.exact.example.org", ""),
        ("example.org", ""),
        ("media-77.cdn.example.net", "site media-*.cdn.example.net"),
        ("x.media-77.cdn.example.net", "site media-*.cdn.example.net"),
        ("media-1.cdn.example.net", "upload media-1.cdn.example.net"),
        ("media.cdn.example.net", ""),
        ("a.up7.cdn.example.net", "upload *.up*.cdn.example.net"),
        ("up7.cdn.example.net", ""),
        ("com", ""),
        ("", ""),
        (".", ""),
        ("..", ""),
        (":443", ""),
        ("[2001:db8::1]:443", ""),
        ("192.0.2.1", ""),
        ("..example.com", "site example.com"),
    ] {
        assert_eq!(whose(&bundle, bundle.host(host.as_bytes())), expected, "{host}");
    }
    let long = format!("{}.example.com", "a.".repeat(200));
    assert_eq!(bundle.host(long.as_bytes()), None);
}

#[test]
fn a_layer_above_wins_whatever_is_longer() {
    let bundle = built(&[
        "category = 'web'\n[a]\nhosts = ['www.example.com', 'example.org']\naddresses = ['192.0.2.0/28', '198.51.100.0/24']",
        "category = 'web'\n[b]\nhosts = ['example.com']\naddresses = ['192.0.2.0/24']\n[a]\nname = 'A'\nhosts = ['example.net']",
    ]);
    assert_eq!(whose(&bundle, bundle.host(b"www.example.com")), "b example.com");
    assert_eq!(whose(&bundle, bundle.host(b"example.org")), "a example.org");
    assert_eq!(whose(&bundle, bundle.host(b"example.net")), "a example.net");
    assert_eq!(whose(&bundle, bundle.address("192.0.2.1".parse().unwrap())), "b 192.0.2.0/24");
    assert_eq!(whose(&bundle, bundle.address("198.51.100.1".parse().unwrap())), "a 198.51.100.0/24");
    assert_eq!(&*bundle.application(bundle.by_name("a").unwrap()).display, "A");
    let replaced = built(&[
        "category = 'web'\n[a]\nhosts = ['example.com', 'example.org']",
        "[a]\nreplace = true\nhosts = ['example.net']",
    ]);
    assert_eq!(replaced.host(b"example.com"), None);
    assert_eq!(whose(&replaced, replaced.host(b"example.net")), "a example.net");
}

#[test]
fn each_kind_of_rule_finds_its_own() {
    let bundle = built(&[r#"
        category = "games"
        [a]
        keywords = ["funny-game"]
        regexes = ['^edge[0-9]+\.funny\.']
        certificates = ["cert.example.com"]
        alpns = ["funny/1"]
        ja4s = ["t13d1516h2_8daaf6152771_e5627efa2ab1"]
        agents = ["Funny Game/"]
        addresses = ["2001:db8::/32", "192.0.2.7"]
        ports = ["udp/4000-4002", "tcp/4000"]
        patterns = ["udp@0 |01 ?? 03 04 05|", "tcp HELLO-FG", "any /^fg[0-9]+ok/"]
        [b]
        hosts = ["example.net"]
        agents = ["Funny"]
    "#]);
    assert_eq!(whose(&bundle, bundle.host(b"My-Funny-Game.example.org")), "a funny-game");
    assert_eq!(whose(&bundle, bundle.host(b"funny-game.example.net")), "b example.net", "a suffix first");
    assert_eq!(whose(&bundle, bundle.host(b"EDGE12.funny.example.org")), r"a ^edge[0-9]+\.funny\.");
    assert_eq!(bundle.host(b"edge.funny.example.org"), None);
    assert_eq!(whose(&bundle, bundle.certificate(b"*.cert.example.com")), "a cert.example.com");
    assert_eq!(whose(&bundle, bundle.certificate(b"www.example.net")), "b example.net");
    assert_eq!(bundle.host(b"cert.example.com"), None);
    assert_eq!(whose(&bundle, bundle.alpn(b"funny/1")), "a funny/1");
    assert_eq!(bundle.alpn(b"Funny/1"), None);
    assert_eq!(
        bundle.ja4("t13d1516h2_8daaf6152771_e5627efa2ab1").map(|it| it.application),
        bundle.by_name("a")
    );
    assert_eq!(whose(&bundle, bundle.agent(b"Mozilla (funny game/1.0)")), "a funny game/");
    assert_eq!(whose(&bundle, bundle.agent(b"Mozilla/5.0 funny/2")), "b funny");
    assert_eq!(bundle.agent(b"unfunny/2"), None, "a word begins");
    assert_eq!(whose(&bundle, bundle.address("2001:db8::1".parse().unwrap())), "a 2001:db8::/32");
    assert_eq!(whose(&bundle, bundle.address("::ffff:192.0.2.7".parse().unwrap())), "a 192.0.2.7/32");
    assert_eq!(bundle.address("192.0.2.8".parse().unwrap()), None);
    assert_eq!(whose(&bundle, bundle.port(Carrier::Udp, 4002)), "a udp/4000-4002");
    assert_eq!(bundle.port(Carrier::Udp, 4003), None);
    assert_eq!(bundle.port(Carrier::Tcp, 4001), None);
    assert_eq!(
        whose(&bundle, bundle.pattern(Carrier::Udp, b"\x01\xff\x03\x04\x05...")),
        "a udp@0 |01 ?? 03 04 05|"
    );
    assert_eq!(bundle.pattern(Carrier::Tcp, b"\x01\xff\x03\x04\x05..."), None);
    assert_eq!(bundle.pattern(Carrier::Udp, b"\x01\xff\x03\x04"), None);
    assert_eq!(whose(&bundle, bundle.pattern(Carrier::Tcp, b"...HELLO-FG")), "a tcp HELLO-FG");
    assert_eq!(bundle.pattern(Carrier::Tcp, b"...hello-fg"), None);
    assert_eq!(whose(&bundle, bundle.pattern(Carrier::Sctp, b"fg12ok")), "a any /^fg[0-9]+ok/");
}
