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
        bundle.ja4(b"t13d1516h2_8daaf6152771_e5627efa2ab1").map(|it| it.application),
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

/// A name that only this rule's text is made for.
fn sample(text: &str) -> String {
    text.trim_start_matches('=').replace('*', "x1")
}

#[test]
fn each_rule_that_is_built_in_finds_its_own_application() {
    let bundle = Bundle::built_in();
    let mut shadowed = Vec::new();
    for (index, rule) in bundle.rules().enumerate() {
        let found = match rule.kind {
            Kind::Host | Kind::Certificate => {
                let whole = sample(rule.text);
                let below = format!("below.{whole}");
                if !rule.text.starts_with('=') {
                    let below = match rule.kind {
                        Kind::Host => bundle.host(below.as_bytes()),
                        _ => bundle.certificate(below.as_bytes()),
                    };
                    shadowed.extend(below.filter(|it| it.application != rule.application).map(|_| rule.text));
                    assert_ne!(below, None, "below {}", rule.text);
                }
                match rule.kind {
                    Kind::Host => bundle.host(whole.as_bytes()),
                    _ => bundle.certificate(whole.as_bytes()),
                }
            }
            Kind::Agent => bundle.agent(rule.text.as_bytes()),
            Kind::Address => bundle.address(rule.text.split('/').next().unwrap().parse().unwrap()),
            Kind::Port => {
                let Ok(ports) = rules::ports(rule.text) else { panic!("{}", rule.text) };
                bundle.port(ports.carrier, ports.to)
            }
            Kind::Pattern => {
                let Ok(pattern) = rules::Pattern::parse(rule.text) else { panic!("{}", rule.text) };
                let rules::Body::Octets(octets) = pattern.body else {
                    panic!("{}: an expression", rule.text)
                };
                let free = vec![7; pattern.offset.unwrap_or_default().into()];
                let payload: Vec<u8> =
                    free.into_iter().chain(octets.iter().map(|octet| octet.unwrap_or(7))).collect();
                bundle.pattern(pattern.carrier.unwrap_or(Carrier::Udp), &payload)
            }
            Kind::Keyword | Kind::Regex | Kind::Alpn | Kind::Ja4 => {
                panic!("rule {index}, `{}`: this test doesn't know how to try it", rule.text)
            }
        };
        // Another's longer prefix may begin at the same address.
        let found = found.unwrap_or_else(|| panic!("nobody has {}", rule.text));
        if found.application != rule.application {
            let other = bundle.rule(found.rule).unwrap();
            assert!(
                rule.kind == Kind::Address && other.text.len() >= rule.text.len(),
                "{} is of {other:?}",
                rule.text
            );
        }
    }
    // `*.example.com` takes all that is below `example.com`: the latter should be `=example.com`.
    assert_eq!(shadowed, Vec::<&str>::new());
}

#[test]
fn well_known_names_are_whose_they_are() {
    let bundle = Bundle::built_in();
    for (host, expected) in [
        ("www.google.com.br", "google"),
        ("r3---sn-4g5e6nsz.googlevideo.com", "youtube"),
        ("upload.youtube.com", "youtube-upload"),
        ("mtalk.google.com", "google-services"),
        ("imap.gmail.com", "gmail"),
        ("dns.google", "google-public-dns"),
        ("googleads.g.doubleclick.net", "google-ads"),
        ("scontent.cdninstagram.com", "instagram"),
        ("instagram.fxyz1-1.fna.fbcdn.net", "instagram"),
        ("video.fxyz1-2.fna.fbcdn.net", "facebook-video"),
        ("scontent.xx.fbcdn.net", "facebook"),
        ("mmg.whatsapp.net", "whatsapp-files"),
        ("g.whatsapp.net", "whatsapp"),
        ("1-courier.push.apple.com", "apple-push"),
        ("p51-buy.itunes.apple.com", "apple-store"),
        ("gateway.icloud.com", "apple-icloud"),
        ("guzzoni.apple.com", "apple-siri"),
        ("ctldl.windowsupdate.com", "windows"),
        ("fe3.delivery.mp.microsoft.com", "windows-update"),
        ("contoso.sharepoint.com", "sharepoint"),
        ("d111111abcdef8.cloudfront.net", "cloudfront"),
        ("example.blob.core.windows.net", "azure-storage"),
        ("mybucket.s3.eu-west-1.amazonaws.com", "amazon-s3"),
        ("a248.e.akamai.net", "akamai"),
        ("nflxvideo.net", "netflix"),
        ("pv-cdn.net", "amazon-video"),
        ("short.weixin.qq.com", "wechat"),
        ("vk.com", "vk"),
        ("ocsp.digicert.com", "digicert"),
        ("o.lencr.org", "certificates"),
        ("0.pool.ntp.org", "ntp-pool"),
        ("chatgpt.com", "chatgpt"),
        ("mask.icloud.com", "apple-private-relay"),
    ] {
        let found = bundle.host(host.as_bytes()).map(|found| &*bundle.application(found.application).name);
        assert_eq!(found, Some(expected), "{host}");
    }
    for stranger in [
        "localhost",
        "intranet.corp.test",
        "notgoogle.com",
        "google.com.evil.test",
        "co.uk",
        "fbcdn.net.test",
    ] {
        assert_eq!(bundle.host(stranger.as_bytes()), None, "{stranger}");
    }
    assert!(bundle.len() > 600);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = r#"version = "1"
categry = "web"
[shop]
category = "shoping"
hosts = ["example.com", "co.uk", "com", "www.example.com", "bad name", 7, "192.0.2.1"]
adresses = ["192.0.2.0/24"]
addresses = ["192.0.2.1/24", "0.0.0.0/0", "192.0.2.0/33"]
ports = ["udp/1-9999", "tcp/443"]
[Video]
hosts = ["example.org"]
[clip]
category = "video"
parent = "nobody"
hosts = ["example.com", "https://example.net/"]
regexes = ['(', 'a*', '.{99999}']
patterns = ["udp@0 |0x|", "tcp abc", "any /x/"]
[idle]
category = "web"
"#;
    let mut builder = Builder::new();
    builder.read("mine.toml", text);
    let findings = builder.build().map(|_| ()).unwrap_err();
    let lines: Vec<String> = findings
        .list
        .iter()
        .map(|it| format!("{}:{} {}", it.location.line, it.location.column, it.wrong))
        .collect();
    assert_eq!(
        lines,
        [
            "2:1 unknown key `categry`",
            "4:12 unknown category `shoping`",
            "5:10 host `example.com` is of `shop`, and of `clip` too",
            "5:25 `co.uk` is a public suffix: names below it are anybody's",
            "5:34 `com` is a public suffix: names below it are anybody's",
            "5:41 host `www.example.com` is below `example.com` of the same application",
            "5:60 `bad name` is not a host rule: names have letters, digits, hyphens and underlines, and `*` for what varies",
            "5:72 `hosts` must be a list of texts",
            "5:75 `192.0.2.1` is not a host rule: it is an address: `addresses` has those",
            "6:1 unknown key `adresses`",
            "7:14 `192.0.2.1/24` is not a prefix of addresses: bits are set behind the prefix",
            "7:30 `0.0.0.0/0` is not a prefix of addresses: it is shorter than any company's: 8 bits of IPv4 and 16 of IPv6 at least",
            "7:43 `192.0.2.0/33` is not a prefix of addresses: it has more bits than the address",
            "8:10 `udp/1-9999` is not a port or a range of ports",
            "9:2 `Video` can't be an application's name",
            "11:2 `nobody`, of which `clip` is said to be a part, is no application",
            "14:25 `https://example.net/` is not a host rule: it is an address of a page, of which only the host counts",
            "15:12 the regular expression `(` can't be used: unclosed group",
            "15:17 the regular expression `a*` can't be used: it fits everything",
            "15:23 the regular expression `.{99999}` can't be used: it is too big",
            "16:13 `udp@0 |0x|` is not a pattern: between | are octets of two hexadecimal digits",
            "16:27 `tcp abc` is not a pattern: fewer than four fixed octets are found by chance",
            "17:2 application `idle` has no rules",
        ]
    );
    let help: Vec<String> = findings.list.iter().take(2).filter_map(|it| it.wrong.help()).collect();
    assert_eq!(help, ["did you mean `category`?", "did you mean `shopping`?"]);
}

#[test]
fn findings_show_the_line() {
    let mut builder = Builder::new();
    builder.read("a.toml", "[a]\ncategory = 'web'\nhosts = ['example.com']\n[b]\ncategory = 'web'\nhosts = ['x.example', 'example.com']\n");
    let findings = builder.build().map(|_| ()).unwrap_err();
    assert_eq!(
        findings.to_string(),
        "a.toml:6:23: error: host `example.com` is of `b`, and of `a` too\n\
        \x20   6 | hosts = ['x.example', 'example.com']\n\
        \x20     |                       ^^^^^^^^^^^\n\
        \x20before: a.toml:3\n\
        \x20help: take it from one of them, or be more exact than `example.com`: the longer rule wins. To overrule `a`, write it in a file of your own\n"
    );
}

#[test]
fn what_is_no_toml_is_said() {
    let nested = format!("{} = 1", vec!["a"; 100_000].join("."));
    for (text, expected) in [
        ("[a\n", "unclosed table"),
        ("[a]\nhosts = [", "unclosed array"),
        (nested.as_str(), "no key has that many parts"),
    ] {
        let mut builder = Builder::new();
        builder.read("a.toml", text);
        let findings = builder.build().map(|_| ()).unwrap_err();
        assert!(findings.to_string().contains(expected), "{findings}");
    }
}

#[test]
fn thousands_of_errors_are_counted() {
    let hosts = "'no name', ".repeat(5000);
    let mut builder = Builder::new();
    builder.read("a.toml", &format!("[a]\ncategory = 'web'\nhosts = [{hosts}]\n"));
    let findings = builder.build().map(|_| ()).unwrap_err();
    assert_eq!(findings.list.len(), MAX_FINDINGS);
    assert!(findings.further > 0 && findings.to_string().len() < 64 * 1024);
}

#[test]
fn a_bundle_outlives_its_successor() {
    let old = Bundle::built_in();
    let mut builder = Builder::over(&old);
    let id = builder.application("mine", None, crate::Category::Web).unwrap();
    builder.add(id, Kind::Host, "youtube.com").unwrap();
    let new = builder.build().unwrap().bundle;
    assert_eq!(whose(&new, new.host(b"www.youtube.com")), "mine youtube.com");
    assert_eq!(whose(&old, old.host(b"www.youtube.com")), "youtube youtube.com");
    assert_ne!(old.version(), new.version());
    assert_eq!(
        old.by_name("netflix").map(ApplicationId::index),
        new.by_name("netflix").map(ApplicationId::index)
    );
}

#[test]
fn questions_have_answers() {
    let bundle = Bundle::built_in();
    let explained = bundle.explain("upload.youtube.com").unwrap();
    assert_eq!(explained.applications, ["youtube-upload", "youtube", "google"]);
    assert_eq!((explained.kind, explained.rule.as_str()), (Kind::Host, "upload.youtube.com"));
    assert_eq!(explained.file, "signatures/google.toml");
    assert!(explained.line > 0);
    assert_eq!(bundle.explain("8.8.8.8").unwrap().applications, ["google-public-dns", "google"]);
    assert_eq!(bundle.explain("no.such.name.test"), None);
    let rows = bundle.list("youtube m");
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["youtube-music"]);
    assert_eq!(rows[0].parent.as_deref(), Some("youtube"));
    let summary = bundle.summary();
    assert_eq!(summary.applications, bundle.list("").len());
    assert_eq!(summary.rules.iter().map(|(_, count)| count).sum::<usize>(), bundle.rules().len());
}

#[test]
fn files_are_read_and_written() {
    let directory = std::env::temp_dir().join(format!("millrace-signatures-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (mine, compiled) = (directory.join("mine.toml"), directory.join("all.bundle"));
    std::fs::write(&mine, "[mine]\ncategory = 'web'\nhosts = ['corp.example']\n").unwrap();
    let over = Bundle::built_in().with_files(&[&mine]).unwrap().bundle;
    assert_eq!(whose(&over, over.host(b"corp.example")), "mine corp.example");
    over.write_compiled(&compiled).unwrap();
    let read = Bundle::load(&compiled).unwrap().bundle;
    assert_eq!(read.version(), over.version());
    assert_eq!(Bundle::load(&mine).unwrap().bundle.len(), 1);
    std::fs::write(&mine, [0xff, 0xfe]).unwrap();
    assert!(matches!(Bundle::load(&mine), Err(LoadError::NotText { .. })));
    std::fs::write(&mine, &over.compiled()[..100]).unwrap();
    assert!(matches!(Bundle::load(&mine), Err(LoadError::Compiled { .. })));
    assert!(matches!(Bundle::load(&directory.join("absent")), Err(LoadError::Read { .. })));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_examples_of_the_page_are_right() {
    let page = include_str!("../../../../docs/signatures.md");
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    let mut builder = Builder::over(&Bundle::built_in());
    for (index, text) in examples.iter().enumerate() {
        builder.next_layer();
        builder.read(&format!("example {index}"), text);
    }
    let built = builder.build().unwrap_or_else(|findings| panic!("{findings}"));
    assert!(built.warnings.is_empty(), "{}", built.warnings);
    let bundle = built.bundle;
    for (host, expected) in [
        ("wiki.corp.example", "intranet corp.example"),
        ("upload.video.example", "example-video-upload upload.video.example"),
        ("cdn-7.example.net", "example-video cdn-*.example.net"),
        ("youtube-cache.example.net", "youtube youtube-cache.example.net"),
        ("www.youtube.com", "youtube youtube.com"),
        ("netflix.example.net", "netflix netflix.example.net"),
        ("www.netflix.com", ""),
    ] {
        assert_eq!(whose(&bundle, bundle.host(host.as_bytes())), expected, "{host}");
    }
    // Each way of writing a rule in the table is one.
    let table =
        page.split("| key | a rule is | and fits |").nth(1).and_then(|rest| rest.split("\n\n").next());
    let mut kind = None;
    let mut count = 0;
    for row in table.unwrap_or("").lines().filter(|row| row.contains('`')) {
        let cell = |index: usize| {
            row.replace("\\|", "\u{1}").split('|').nth(index).unwrap_or("").replace('\u{1}', "|")
        };
        let name = cell(1).replace('`', "");
        kind = Kind::ALL.iter().copied().find(|kind| kind.key() == name.trim()).or(kind);
        for text in cell(2).split('`').skip(1).step_by(2) {
            assert!(rules::canonical(kind.unwrap(), text).is_ok(), "{row}");
            count += 1;
        }
    }
    assert!(count >= 14, "{count}");
    for category in crate::Category::ALL {
        assert!(page.contains(category.name()), "{}", category.name());
    }
}
