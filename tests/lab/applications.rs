//! Rules for applications: what real programs see of them, and the SMF.

use crate::rig::{Lab, alone, lacking, said};
use std::process::{Child, Command, Stdio};
use testing::Directory;

/// The data network's server.
const DN: &str = "203.0.113.2";

/// A server for TLS in the data network, gone when dropped.
struct Tls(Child);

impl Tls {
    fn start(lab: &Lab, directory: &Directory) -> Self {
        let [key, certificate] = ["key.pem", "certificate.pem"].map(|file| directory.0.join(file));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=dn"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", said(&made));
        let server = Command::new("ip")
            .args([
                "netns",
                "exec",
                &format!("{}-dn", lab.name),
                "openssl",
                "s_server",
                "-accept",
                "443",
                "-www",
            ])
            .arg("-key")
            .arg(&key)
            .arg("-cert")
            .arg(&certificate)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self(server);
        // It is there when it can be reached from its own host.
        lab.run_in("dn", "until curl -sk -o /dev/null https://127.0.0.1/; do sleep 0.1; done");
        server
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn rules_for_applications_hold_for_real_programs() {
    if lacking(&["curl", "openssl", "tshark", "tcpdump"]) {
        return;
    }
    let _alone = alone();
    let directory = Directory::new("applications");
    let to = directory.0.to_str().unwrap();
    let rules = ["youtube=redirect:http://dn/portal", "netflix=drop", "spotify=count"];
    let rules = rules.iter().flat_map(|rule| ["--application", rule]);
    let args: Vec<_> = rules.chain(["--workers", "2", "--capture", to]).collect();
    let lab = Lab::start("apps", &args);
    let tls = Tls::start(&lab, &directory);
    let ask = |more: &str, url: &str| {
        let host = url.split('/').nth(2).unwrap();
        let resolve = format!("--resolve {host}:80:{DN} --resolve {host}:443:{DN}");
        lab.try_in("ran", &format!("curl -4 -sSk --max-time 20 {resolve} {more} {url}"))
    };

    // Nobody asks for these, in clear or ciphered.
    for url in ["http://www.example.org/bytes/100000", "https://www.example.org/"] {
        let answer = ask("--fail", url);
        assert!(answer.status.success(), "{url}: {}", said(&answer));
    }

    // Redirected: the UE is told where to; of what is ciphered, it is only told that there is nothing (curl's code 35).
    let answer = ask("-i", "http://www.youtube.com/watch?v=1");
    let text = String::from_utf8(answer.stdout).unwrap();
    assert!(text.starts_with("HTTP/1.1 302 "), "{text}");
    assert!(text.lines().any(|line| line.eq_ignore_ascii_case("location: http://dn/portal")), "{text}");
    let answer = ask("", "https://www.youtube.com/");
    assert_eq!(answer.status.code(), Some(35), "{}", said(&answer));
    assert!(said(&answer).contains("reset"), "{}", said(&answer));

    // Dropped (curl's code 28: time is up).
    for url in ["http://www.netflix.com/", "https://www.netflix.com/"] {
        let answer = ask("--max-time 2", url);
        assert_eq!(answer.status.code(), Some(28), "{url}: {}", said(&answer));
    }

    // Counted.
    let answer = ask("--fail", "http://www.spotify.com/bytes/1000000");
    assert_eq!(answer.stdout, lab::web::pattern(1_000_000), "{}", String::from_utf8_lossy(&answer.stderr));

    drop(tls);
    std::thread::sleep(std::time::Duration::from_millis(300));
    lab.end();
    let capture = ["pcapng", "pcap"].map(|end| directory.0.join(format!("n4.{end}")));
    let capture = capture.iter().find(|path| path.exists()).unwrap();
    // What the SMF was told: the traffic of an application begins.
    for application in ["youtube", "netflix", "spotify"] {
        let filter = format!(
            "pfcp.msg_type == 56 && pfcp.usage_report_trigger_flags.start == 1 && pfcp.application_id_str == \"{application}\""
        );
        let output = Command::new("tshark").arg("-r").arg(capture).args(["-Y", &filter]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(!output.stdout.is_empty(), "nothing was told of {application}");
    }
}
