//! A lab for a test, and what the tests ask of the machine.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Two labs at once would measure each other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether no lab can be built here; then the test that asks is skipped.
pub fn lacking(tools: &[&str]) -> bool {
    let root = Command::new("sh").args(["-c", "test $(id -u) = 0"]).status().unwrap().success();
    let missing: Vec<_> =
        ["ip", "ethtool", "ping"].iter().chain(tools).filter(|tool| !lab::can_run(Path::new(tool))).collect();
    let tun = Path::new("/dev/net/tun").exists();
    if !root || !missing.is_empty() || !tun {
        testing::skipped(format!("root {root}, /dev/net/tun {tun}, missing tools {missing:?}"));
    }
    !root || !missing.is_empty() || !tun
}

pub fn binary() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_millrace"));
    let release = own.parent().and_then(Path::parent).unwrap().join("release/millrace");
    if release.exists() { release } else { own.to_owned() }
}

pub fn millrace(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null());
    command
}

pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A lab that waits, until dropped.
pub struct Lab {
    pub name: String,
    pub child: Child,
    pub banner: String,
}

impl Lab {
    pub fn start(test: &str, args: &[&str]) -> Self {
        let name = format!("t{}-{test}", std::process::id());
        let mut child =
            millrace(&["lab", "--name", &name]).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut banner = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            banner.extend([&line, "\n"]);
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let lab = Self { name, child, banner };
        assert!(lab.banner.contains("Ctrl-C"), "the lab did not start: {}", lab.banner);
        lab
    }

    /// Runs a shell script in one of the namespaces. What takes ten minutes hangs.
    pub fn try_in(&self, namespace: &str, script: &str) -> Output {
        let namespace = format!("{}-{namespace}", self.name);
        Command::new("timeout")
            .args(["600", "ip", "netns", "exec", &namespace, "sh", "-c", script])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Likewise; it must succeed.
    pub fn run_in(&self, namespace: &str, script: &str) -> String {
        let output = self.try_in(namespace, script);
        assert!(
            output.status.success(),
            "{script}: {}\n{}\n{}",
            output.status,
            said(&output),
            self.drops_text()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// As the UE.
    pub fn ue(&self, script: &str) -> String {
        self.run_in("ran", script)
    }

    fn socket(&self) -> String {
        format!("/run/millrace/lab-{}/ctl.sock", self.name)
    }

    pub fn ctl(&self, question: &str) -> serde_json::Value {
        self.ask(&[question])
    }

    /// A question with parameters.
    pub fn ask(&self, question: &[&str]) -> serde_json::Value {
        let output =
            millrace(&["ctl", "--json", "--socket", &self.socket()]).args(question).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn drops_text(&self) -> String {
        said(&millrace(&["ctl", "--socket", &self.socket(), "drops"]).output().unwrap())
    }

    /// Packets dropped for this reason.
    pub fn drops(&self, reason: &str) -> u64 {
        let answer = self.ctl("drops");
        let lines = answer["drops"].as_array().unwrap();
        lines.iter().find(|line| line["reason"] == reason).map_or(0, |line| line["packets"].as_u64().unwrap())
    }

    /// Waits until so many packets were dropped for this reason: the drop is counted when the packet is through, and seen when its
    /// worker has published.
    pub fn awaits_drops(&self, reason: &str, packets: u64) {
        let until = Instant::now() + Duration::from_mins(1);
        while self.drops(reason) < packets {
            assert!(Instant::now() < until, "{packets} {reason} were awaited\n{}", self.drops_text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Packets that the kernel dropped so far on their way to Millrace, to the gNB and to programs: queues of interfaces (the TUN
    /// interface's, cables'), of processors, of sockets, and the rings that Millrace takes packets from. A machine that has other work to do than
    /// to empty them loses some.
    pub fn lost_by_the_kernel(&self) -> u64 {
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        // The second column, in hexadecimal, of all processors.
        let softnet = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
        let softnet = softnet.lines().filter_map(|line| line.split_whitespace().nth(1));
        let mut lost: u64 = softnet.filter_map(|word| u64::from_str_radix(word, 16).ok()).sum();
        for namespace in ["ran", "upf", "dn"] {
            let told = self.run_in(namespace, "cat /proc/net/dev /proc/net/snmp /proc/net/snmp6");
            let mut udp = Vec::new();
            for line in told.lines() {
                let words: Vec<_> = line.split_whitespace().collect();
                match words.as_slice() {
                    // bytes, packets, errs, drop, …, eight of them received and eight sent.
                    [name, rest @ ..] if name.ends_with(':') && rest.len() == 16 => {
                        lost += number(rest[3]) + number(rest[11]);
                    }
                    ["Udp:", names @ ..] if udp.is_empty() => udp = names.to_vec(),
                    ["Udp:", values @ ..] => {
                        let named = udp.iter().zip(values).find(|(name, _)| **name == "RcvbufErrors");
                        lost += named.map_or(0, |(_, value)| number(value));
                    }
                    ["Udp6RcvbufErrors", value] => lost += number(value),
                    _ => {}
                }
            }
        }
        let ports = self.ctl("ports");
        lost + ports["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| port["rx_missed"].as_u64().unwrap())
            .sum::<u64>()
    }

    /// The UE's addresses.
    pub fn ue_addresses(&self) -> [String; 2] {
        ["-4", "-6"].map(|family| {
            let line = self.ue(&format!("ip {family} -brief address show dev ue0 scope global"));
            line.split_whitespace().find_map(|word| word.split_once('/')).unwrap().0.to_owned()
        })
    }

    pub fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Ends it as Ctrl-C does.
    pub fn end(mut self) {
        self.signal("INT");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(left_of(&self.name), Vec::<String>::new());
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.signal("TERM");
            self.child.wait().unwrap();
        }
    }
}

/// What is left of a lab of this name: namespaces, files and processes.
pub fn left_of(name: &str) -> Vec<String> {
    let mut left = Vec::new();
    for part in ["ran", "upf", "dn", "ue1", "ue2", "ue3"] {
        for directory in ["/run/netns", "/etc/netns"] {
            left.push(format!("{directory}/{name}-{part}"));
        }
    }
    left.push(format!("/run/millrace/lab-{name}"));
    left.retain(|path| Path::new(path).exists());
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(name) {
            left.push(line);
        }
    }
    left
}
