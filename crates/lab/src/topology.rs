//! Three network namespaces joined by veth pairs: `ran` and `dn`, and between them the one that the UPF runs in.
//!
//! ```text
//!   ran                    upf                     dn
//!   ue0 (TUN, the UE)      lo: N4 (SMF model)
//!   n3  192.0.2.2  ------  n3 | Millrace | n6 ----  n6  203.0.113.2
//!       2001:db8:3::2                                   2001:db8:6::2
//! ```
//! The interfaces in `upf` have no addresses: they belong to Millrace, and the kernel must not answer for them.

use crate::LabError;
use std::fs;
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
    /// Millrace on N6.
    pub const UPF_N6: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    /// Millrace on N6, IPv6.
    pub const UPF_N6_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
    /// The data network's host.
    pub const DN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    /// The data network's host, IPv6.
    pub const DN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 2);
    /// Millrace's N4.
    pub const UPF_N4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
    /// The SMF model's N4.
    pub const SMF_N4: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    /// Where UE addresses come from.
    pub const UE_POOL: &str = "10.45.0.0/16";
    /// Where UE prefixes come from.
    pub const UE_POOL_V6: &str = "2001:db8:45::/48";
}

/// MTU of the veth pairs. A downlink packet of 1,500 bytes does not fit with its tunnel headers: path MTU discovery has work to do.
pub const MTU: u16 = 1_500;

/// The namespaces' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    /// The radio side.
    pub ran: String,
    /// Where Millrace and the SMF model run.
    pub upf: String,
    /// The data network.
    pub dn: String,
}

impl Namespaces {
    /// `ran`, `upf` and `dn`; with a name, `NAME-ran` and so on, so that several labs run side by side.
    ///
    /// Errors: the name is not made of letters, digits and hyphens, or is too long.
    pub fn named(name: Option<&str>) -> Result<Self, LabError> {
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
        let full = |short| format!("{prefix}{short}");
        Ok(Self { ran: full("ran"), upf: full("upf"), dn: full("dn") })
    }

    /// All three.
    pub fn each(&self) -> [&str; 3] {
        [&self.ran, &self.upf, &self.dn]
    }

    /// The file that names a network namespace.
    pub fn file(namespace: &str) -> PathBuf {
        PathBuf::from("/run/netns").join(namespace)
    }

    /// Files that `ip netns exec` puts over those in /etc.
    fn etc(namespace: &str) -> PathBuf {
        PathBuf::from("/etc/netns").join(namespace)
    }

    /// Makes the namespaces, links, addresses and routes, and the name `dn` known in `ran`.
    ///
    /// Errors: not root, a tool is missing, or namespaces of these names exist already.
    pub fn create(&self) -> Result<(), LabError> {
        if let Some(taken) = self.each().into_iter().find(|name| Self::file(name).exists()) {
            return Err(LabError::Exists(taken.to_owned()));
        }
        for name in self.each() {
            run("ip", &format!("netns add {name}"))?;
            // Everything in a namespace of its own has only link-local noise to send by itself; keep captures clean of it.
            self.within(name, "sysctl -q -w net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.dad_transmits=0")?;
            self.within(name, "ip link set lo up")?;
        }
        self.join(&self.ran, "n3", &[&address::GNB, &address::GNB_V6])?;
        self.join(&self.dn, "n6", &[&address::DN, &address::DN_V6])?;
        let (v4, v6) = (address::UE_POOL, address::UE_POOL_V6);
        self.within(&self.dn, &format!("ip route add {v4} via {}", address::UPF_N6))?;
        self.within(&self.dn, &format!("ip -6 route add {v6} via {}", address::UPF_N6_V6))?;
        let hosts = format!("127.0.0.1 localhost\n::1 localhost\n{} dn\n{} dn\n", address::DN, address::DN_V6);
        for name in self.each() {
            let etc = Self::etc(name);
            fs::create_dir_all(&etc)
                .and_then(|()| fs::write(etc.join("hosts"), &hosts))
                .map_err(|source| LabError::File { path: etc, source })?;
        }
        Ok(())
    }

    /// A veth pair between `upf` and another namespace, of the same name at both ends; addresses at the far end only.
    fn join(&self, far: &str, link: &str, addresses: &[&dyn std::fmt::Display]) -> Result<(), LabError> {
        let upf = &self.upf;
        run("ip", &format!("link add {link} netns {upf} type veth peer name {link} netns {far}"))?;
        for end in [upf.as_str(), far] {
            // A veth passes packets on with the checksum that a NIC would have filled in still missing, and
            // several of them glued together. What leaves a namespace here must be what travels on a wire.
            self.within(end, &format!("ethtool -K {link} tx off rx off tso off gso off gro off"))?;
            if end == upf {
                self.within(end, &format!("sysctl -q -w net.ipv6.conf.{link}.disable_ipv6=1"))?;
                self.within(end, &format!("sysctl -q -w net.ipv4.conf.{link}.arp_ignore=8"))?;
            }
            self.within(end, &format!("ip link set {link} mtu {MTU} up"))?;
        }
        for address in addresses {
            let bits = if address.to_string().contains(':') { "64 nodad" } else { "24" };
            let address = address.to_string();
            let (bits, flags) = bits.split_once(' ').unwrap_or((bits, ""));
            self.within(far, format!("ip address add {address}/{bits} dev {link} {flags}").trim_end())?;
        }
        Ok(())
    }

    /// Runs a command line (split at blanks) in one of the namespaces.
    pub fn within(&self, namespace: &str, line: &str) -> Result<(), LabError> {
        run("ip", &format!("netns exec {namespace} {line}"))
    }

    /// Ends what runs in the namespaces, and removes them and their files. Goes on after an error, and does nothing where nothing is.
    pub fn remove(&self) {
        for name in self.each() {
            if let Ok(pids) = Command::new("ip").args(["netns", "pids", name]).output() {
                for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
                    let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
                    if let Some(pid) = pid.filter(|pid| *pid != rustix::process::getpid()) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
            }
            if Self::file(name).exists() {
                let _ = run("ip", &format!("netns delete {name}"));
            }
            let _ = fs::remove_dir_all(Self::etc(name));
        }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Namespaces::named(None).unwrap().each(), ["ran", "upf", "dn"]);
        assert_eq!(Namespaces::named(Some("a-1")).unwrap().ran, "a-1-ran");
        for bad in ["", "a/b", "..", "a b", &"x".repeat(33)] {
            assert!(Namespaces::named(Some(bad)).is_err(), "{bad}");
        }
    }
}
