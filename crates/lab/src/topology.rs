//! Three network namespaces joined by veth pairs: `ran` and `dn`, and between them the one that the UPF runs in. Further UEs have
//! one each, `ue1` and on, and gNBs at further addresses in `ran`.
//!
//! ```text
//!   ran                    upf                     dn
//!   ue0 (TUN, the UE)      lo: N4, SMF 198.51.100.2
//!   n3  192.0.2.2  ------  n3 | Millrace | n6 ----  n6  203.0.113.2
//!       2001:db8:3::2                                   2001:db8:6::2
//! ```
//! The interfaces in `upf` have no addresses: they belong to Millrace, and the kernel must not answer for them.
//!
//! Where a lab is to be flooded, `n3` and `n6` of `ran` and `dn` are bridges: to one port the cable is plugged in, to the other whoever sends
//! whole frames of his own (`Namespaces::plug_in`).

use crate::LabError;
use io::tun::Tun;
use loadgen::facts::SessionFacts;
use std::fmt::Write;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

/// The addresses of the lab; documentation and benchmarking prefixes, since they never leave its namespaces.
pub mod address {
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Millrace on N3.
    pub const UPF_N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    /// Millrace on N3, IPv6.
    pub const UPF_N3_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
    /// The gNB.
    pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    /// The gNB, IPv6.
    pub const GNB_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2);
    /// The gNB of a UE: each has its own.
    pub const fn gnb(ue: u8) -> Ipv4Addr {
        let [a, b, c, d] = GNB.octets();
        Ipv4Addr::new(a, b, c, d + ue)
    }
    /// Millrace on N6.
    pub const UPF_N6: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    /// Millrace on N6, IPv6.
    pub const UPF_N6_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
    /// The data network's host.
    pub const DN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    /// The data network's host, IPv6.
    pub const DN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 2);
    /// Millrace's N4.
    pub const UPF_N4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
    /// The SMF model's N4.
    pub const SMF_N4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
    /// SMFs that [storm](crate::attack::storm).
    pub const STORM_N4: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 51, 100, 4), Ipv4Addr::new(198, 51, 100, 5)];
    /// Where UE addresses come from.
    pub const UE_POOL: &str = "10.45.0.0/16";
    /// Where UE prefixes come from.
    pub const UE_POOL_V6: &str = "2001:db8:45::/48";
    /// What UE addresses become, with translation on N6.
    pub const PUBLIC: &str = "203.0.113.64/28";
    /// What UE prefixes become.
    pub const PUBLIC_V6: &str = "2001:db8:46::/48";
}

/// MTU of the veth pairs. A downlink packet of 1,500 bytes does not fit with its tunnel headers: path MTU discovery has work to do.
pub const MTU: u16 = 1_500;

/// The most UEs of a lab.
pub const MAX_UES: u8 = 16;

/// The namespaces' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// The radio side, where UE 0 is.
    pub ran: String,
    /// UE 1 and on.
    pub further_ues: Vec<String>,
    /// Where Millrace and the SMF model run.
    pub upf: String,
    /// The data network.
    pub dn: String,
}

impl Namespaces {
    /// `ran`, `upf` and `dn`, and `ue1` and on for UEs beyond the first; with a name, `NAME-ran` and so on, so that several labs run
    /// side by side.
    ///
    /// Errors: the name is not made of letters, digits and hyphens, or is too long.
    pub fn named(name: Option<&str>, ues: u8) -> Result<Self, LabError> {
        let prefix = match name {
            None => String::new(),
            Some(name)
                if (1..=32).contains(&name.len())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') =>
            {
                format!("{name}-")
            }
            Some(name) => return Err(LabError::Name(name.to_owned())),
        };
        let full = |short: &str| format!("{prefix}{short}");
        let further_ues = (1..ues.clamp(1, MAX_UES)).map(|ue| full(&ue_name(ue))).collect();
        Ok(Self { ran: full("ran"), further_ues, upf: full("upf"), dn: full("dn") })
    }

    /// All of them.
    pub fn each(&self) -> Vec<&str> {
        let further = self.further_ues.iter().map(String::as_str);
        [&*self.ran, &*self.upf, &*self.dn].into_iter().chain(further).collect()
    }

    /// UEs, each with the namespace that it is in.
    pub fn ues(&self) -> impl Iterator<Item = (u8, &str)> {
        (0..).zip(std::iter::once(&self.ran).chain(&self.further_ues).map(String::as_str))
    }

    /// The file that names a network namespace.
    pub fn file(namespace: &str) -> PathBuf {
        PathBuf::from("/run/netns").join(namespace)
    }

    /// Files that `ip netns exec` puts over those in /etc.
    fn etc(namespace: &str) -> PathBuf {
        PathBuf::from("/etc/netns").join(namespace)
    }

    /// Makes the namespaces, links, addresses and routes, and the name `dn` known in all of them. `claim` hears of each namespace
    /// as soon as it exists. `bridged`: attackers have a place, at the cables' far ends and on N4.
    ///
    /// Errors: not root, a tool is missing, or namespaces of these names exist already; these stay as they are.
    pub fn create(
        &self,
        bridged: bool,
        mut claim: impl FnMut(&str) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        for name in self.each() {
            // `ip` fails too if somebody is faster, in other words.
            if Self::file(name).exists() {
                return Err(LabError::Exists(name.to_owned()));
            }
        }
        for name in self.each() {
            run("ip", &format!("netns add {name}"))?;
            claim(name)?;
            run("ip", &format!("-n {name} link set lo up"))?;
            Self::name_hosts(name, "")?;
        }
        // Not 127.0.0.0/8: some SMFs name their address as a tunnel's end, and that can't be a loopback address.
        let further = if bridged { &address::STORM_N4[..] } else { &[] };
        for n4 in [address::UPF_N4, address::SMF_N4].iter().chain(further) {
            run("ip", &format!("-n {} address add {n4}/32 dev lo", self.upf))?;
        }
        let gnbs: Vec<_> = self.ues().map(|(ue, _)| address::gnb(ue)).collect();
        let gnbs = gnbs.iter().map(|gnb| gnb as &dyn std::fmt::Display);
        self.join(&self.ran, "n3", bridged, &gnbs.chain([&address::GNB_V6 as _]).collect::<Vec<_>>())?;
        self.join(&self.dn, "n6", bridged, &[&address::DN, &address::DN_V6])?;
        let dn = &self.dn;
        run("ip", &format!("-n {dn} route add {} via {}", address::UE_POOL, address::UPF_N6))?;
        // Nobody asks for public prefixes on the link, as for public addresses: they have to be routed to Millrace.
        for prefix in [address::UE_POOL_V6, address::PUBLIC_V6] {
            run("ip", &format!("-n {dn} -6 route add {prefix} via {}", address::UPF_N6_V6))?;
        }
        Ok(())
    }

    /// Makes UEs known by name in all namespaces.
    pub fn name_ues(&self, sessions: &[SessionFacts]) -> Result<(), LabError> {
        let mut lines = String::new();
        for ((ue, _), facts) in self.ues().zip(sessions) {
            let v4 = facts.ue_ipv4.map(IpAddr::V4);
            for address in v4.into_iter().chain(facts.ue_ipv6_address().map(IpAddr::V6)) {
                writeln!(lines, "{address} {}", ue_name(ue))
                    .map_err(|error| LabError::Os(std::io::Error::other(error)))?;
            }
        }
        self.each().into_iter().try_for_each(|name| Self::name_hosts(name, &lines))
    }

    /// A veth pair between `upf` and another namespace, of the same name at both ends; addresses at the far end only.
    fn join(
        &self,
        far: &str,
        link: &str,
        bridged: bool,
        addresses: &[&dyn std::fmt::Display],
    ) -> Result<(), LabError> {
        let upf = self.upf.as_str();
        let plug = if bridged { format!("{link}-cable") } else { link.to_owned() };
        run("ip", &format!("link add {link} netns {upf} type veth peer name {plug} netns {far}"))?;
        for (end, cable) in [(upf, link), (far, &*plug)] {
            // A veth passes packets on with the checksum that a NIC would have filled in still missing, and several of
            // them glued together. What leaves a namespace here must be what travels on a wire.
            run("ip", &format!("netns exec {end} ethtool -K {cable} tx off rx off tso off gso off gro off"))?;
        }
        if bridged {
            // An address of its own, or it would change with each port.
            let mac = format!("02:62:72:00:00:{:02x}", if far == self.ran { 3 } else { 6 });
            let groups = "mcast_snooping 0";
            run("ip", &format!("-n {far} link add {link} address {mac} type bridge {groups}"))?;
            Self::bridge(far, link, &plug)?;
        }
        for end in [upf, far] {
            // The kernel's own chatter has no place in captures: no duplicate address detection, no solicitations of
            // routers that aren't there. The UPF's ends belong to Millrace, and the kernel must not answer for them.
            let switches: &[(&str, &str, &str)] = if end == upf {
                &[("ipv6", "disable_ipv6", "1"), ("ipv4", "arp_ignore", "8")]
            } else {
                &[
                    ("ipv6", "accept_ra", "0"),
                    ("ipv6", "router_solicitations", "0"),
                    ("ipv6", "dad_transmits", "0"),
                ]
            };
            Self::inside(end, || {
                switches.iter().try_for_each(|(family, switch, value)| {
                    let path = PathBuf::from(format!("/proc/sys/net/{family}/conf/{link}/{switch}"));
                    fs::write(&path, value).map_err(|source| LabError::File { path, source })
                })
            })??;
            run("ip", &format!("-n {end} link set {link} mtu {MTU} up"))?;
        }
        for address in addresses {
            let address = address.to_string();
            let (bits, flags) = if address.contains(':') { (64, "nodad") } else { (24, "") };
            run("ip", &format!("-n {far} address add {address}/{bits} dev {link} {flags}"))?;
        }
        Ok(())
    }

    /// Makes an interface a port of a bridge.
    fn bridge(namespace: &str, bridge: &str, port: &str) -> Result<(), LabError> {
        Self::inside(namespace, || {
            let path = PathBuf::from(format!("/proc/sys/net/ipv6/conf/{port}/disable_ipv6"));
            fs::write(&path, "1").map_err(|source| LabError::File { path, source })
        })??;
        run("ip", &format!("-n {namespace} link set {port} mtu {MTU} master {bridge} up"))
    }

    /// One more port of a link's far end: frames that are written to it reach Millrace. Only in a lab whose links are bridged.
    pub(crate) fn plug_in(namespace: &str, link: &str) -> Result<Tun, LabError> {
        let port = format!("{link}-tap");
        let tap = Self::inside(namespace, || Tun::open_tap(&port, false))??;
        Self::bridge(namespace, link, &port)?;
        Ok(tap)
    }

    /// What the names of the lab mean to programs that `ip netns exec` starts; `further` are more lines of that.
    fn name_hosts(namespace: &str, further: &str) -> Result<(), LabError> {
        let etc = Self::etc(namespace);
        let names: [(&dyn std::fmt::Display, &dyn std::fmt::Display, &str); 4] = [
            (&address::DN, &address::DN_V6, "dn"),
            (&address::GNB, &address::GNB_V6, "gnb"),
            (&address::UPF_N3, &address::UPF_N3_V6, "upf-n3"),
            (&address::UPF_N6, &address::UPF_N6_V6, "upf-n6"),
        ];
        let lines = names.map(|(v4, v6, name)| format!("{v4} {name}\n{v6} {name}\n")).concat();
        let hosts = format!("127.0.0.1 localhost\n::1 localhost\n{lines}{further}");
        fs::create_dir_all(&etc)
            .and_then(|()| fs::write(etc.join("hosts"), hosts))
            .and_then(|()| {
                // There is no name server in the lab: a question shall fail at once rather than be waited for.
                let resolver = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
                if PathBuf::from("/etc/resolv.conf").exists() {
                    fs::write(etc.join("resolv.conf"), resolver)
                } else {
                    Ok(())
                }
            })
            .map_err(|source| LabError::File { path: etc, source })
    }

    /// Ends what runs in a namespace, and removes it and its files. Goes on after an error, and does nothing where nothing is.
    pub fn remove(namespace: &str) {
        // A program may be starting another one while it is ended.
        for _ in 0..10 {
            let Ok(pids) = Command::new("ip").args(["netns", "pids", namespace]).output() else { break };
            let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
            let mut found = false;
            for pid in pids.split_whitespace() {
                let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
                if let Some(pid) = pid.filter(|pid| *pid != rustix::process::getpid()) {
                    found |= rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok();
                }
            }
            if !found {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if Self::file(namespace).exists() {
            let _ = run("ip", &format!("netns delete {namespace}"));
        }
        let etc = Self::etc(namespace);
        for file in ["hosts", "resolv.conf"] {
            let _ = fs::remove_file(etc.join(file));
        }
        // Stays if somebody keeps other files there.
        let _ = fs::remove_dir(etc);
    }

    /// Runs this on a thread inside a namespace: sockets that it opens belong there.
    pub fn inside<T: Send>(namespace: &str, body: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| Self::enter(namespace).map(|()| body()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into a namespace: sockets that it opens from now on belong there.
    pub fn enter(namespace: &str) -> Result<(), LabError> {
        let path = Self::file(namespace);
        let file = fs::File::open(&path).map_err(|source| LabError::File { path: path.clone(), source })?;
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind)
            .map_err(|source| LabError::File { path, source: source.into() })
    }
}

/// A UE's name, and its interface's.
pub(crate) fn ue_name(ue: u8) -> String {
    format!("ue{ue}")
}

/// Runs a command line whose words hold no blanks.
pub(crate) fn run(program: &'static str, line: &str) -> Result<(), LabError> {
    let output = Command::new(program).args(line.split_whitespace()).output();
    let output = output.map_err(|source| LabError::Tool { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Command { line: format!("{program} {line}"), said })
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Namespaces::named(None, 1).unwrap().each(), ["ran", "upf", "dn"]);
        let three = Namespaces::named(Some("a-1"), 3).unwrap();
        assert_eq!(three.each(), ["a-1-ran", "a-1-upf", "a-1-dn", "a-1-ue1", "a-1-ue2"]);
        assert_eq!(three.ues().collect::<Vec<_>>(), [(0, "a-1-ran"), (1, "a-1-ue1"), (2, "a-1-ue2")]);
        assert_eq!(Namespaces::named(None, 255).unwrap().ues().count(), usize::from(MAX_UES));
        assert_eq!(address::gnb(0), address::GNB);
        for bad in ["", "a/b", "..", "a b", &"x".repeat(33)] {
            assert!(Namespaces::named(Some(bad), 1).is_err(), "{bad}");
        }
    }

    /// Why namespaces can't be made here.
    pub fn lacking() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("it needs root".to_owned());
        }
        let missing = |tool: &&&str| !crate::process::is_there(tool.as_ref());
        ["ip", "ethtool", "ping"].iter().find(missing).map(|tool| format!("{tool} is missing"))
    }

    #[test]
    fn made_and_removed() {
        if let Some(what) = lacking() {
            return testing::skipped(what);
        }
        let names = Namespaces::named(Some(&format!("t{}", std::process::id())), 1).unwrap();
        let mut claimed = Vec::new();
        let made = names.create(false, |name| {
            claimed.push(name.to_owned());
            Ok(())
        });
        let taken = names.create(false, |_| Ok(()));
        // Its own name is known in it, and the link carries packets: a neighbour entry comes from a real exchange.
        let ping = run("ip", &format!("netns exec {} ping -c 1 -W 5 dn", names.dn));
        let sees =
            Namespaces::inside(&names.upf, || fs::read_to_string("/proc/thread-self/net/dev").unwrap())
                .unwrap();
        let mut lingering =
            Command::new("ip").args(["netns", "exec", &names.ran, "sleep", "60"]).spawn().unwrap();
        while !run_says(&format!("netns pids {}", names.ran)).contains(&lingering.id().to_string()) {}
        names.each().into_iter().for_each(Namespaces::remove);

        made.unwrap();
        ping.unwrap();
        assert_eq!(claimed, names.each());
        assert!(matches!(taken, Err(LabError::Exists(name)) if name == names.ran));
        assert!(sees.contains("n3:") && sees.contains("n6:"), "{sees}");
        assert_eq!(lingering.wait().unwrap().code(), None, "killed");
        for name in names.each() {
            assert!(!Namespaces::file(name).exists() && !Namespaces::etc(name).exists());
            Namespaces::remove(name);
        }
    }

    fn run_says(line: &str) -> String {
        let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}
