//! The configuration that the lab's UPF runs with.

use crate::topology::{MTU, address};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How the UPF drives its ends of the veth pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Driver {
    /// AF_PACKET: works on every kernel.
    #[default]
    AfPacket,
    /// AF_XDP: less work per packet; wants a recent kernel.
    AfXdp,
}

impl Driver {
    const fn key(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AfPacket => "af-packet",
            Self::AfXdp => "af-xdp",
        })
    }
}

impl FromStr for Driver {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::AfPacket, Self::AfXdp]
            .into_iter()
            .find(|driver| driver.to_string() == name)
            .ok_or("use af-packet or af-xdp")
    }
}

/// The TOML file, with the control socket at this path; with translation on N6, its log is beside it. `attacked`: there are SMFs that storm.
pub(crate) fn toml(driver: Driver, workers: u16, nat: bool, attacked: bool, socket: &Path) -> String {
    use address::{
        DN, DN_V6, SMF_N4, STORM_N4, UE_POOL, UE_POOL_V6, UPF_N3, UPF_N3_V6, UPF_N4, UPF_N6, UPF_N6_V6,
    };
    let driver = driver.key();
    let translation = if nat { translation(socket) } else { String::new() };
    let socket = socket.display();
    // One UE and one SMF: the tables can be small, and the start quick.
    let (sessions, further) = if attacked {
        (16_384, STORM_N4.map(|smf| format!(", \"{smf}/32\"")).concat())
    } else {
        (1_024, String::new())
    };
    format!(
        r#"# Written by `millrace lab`.
[node]
name = "lab"

[n4]
listen = "{UPF_N4}:8805"
peers = ["{SMF_N4}/32"{further}]

[[port]]
name = "n3"
driver = "{driver}"
iface = "n3"
mtu = {MTU}

[[port]]
name = "n6"
driver = "{driver}"
iface = "n6"
mtu = {MTU}

[[interface]]
name = "n3"
port = "n3"
roles = ["n3"]
addresses = ["{UPF_N3}/24", "{UPF_N3_V6}/64"]

[[interface]]
name = "n6"
port = "n6"
roles = ["n6"]
addresses = ["{UPF_N6}/24", "{UPF_N6_V6}/64"]

[[route]]
to = "0.0.0.0/0"
via = "{DN}"

[[route]]
to = "::/0"
via = "{DN_V6}"

[[pool]]
ipv4 = ["{UE_POOL}"]
ipv6 = ["{UE_POOL_V6}"]

[workers]
count = {workers}

[limits]
sessions = {sessions}
sessions-per-peer = {sessions}
peers = 16
buffered-packets = 4096

[ctl]
socket = "{socket}"
{translation}"#
    )
}

/// Public addresses on the link to the data network, which finds them by ARP, and a public prefix, which it must be told.
fn translation(socket: &Path) -> String {
    use address::{PUBLIC, PUBLIC_V6, UE_POOL, UE_POOL_V6};
    let log = socket.with_file_name("nat.jsonl");
    let log = log.display();
    format!(
        r#"
[[nat]]
name = "lab"
inside = ["{UE_POOL}"]
outside = ["{PUBLIC}"]
log = "bindings"

[[nptv6]]
inside = "{UE_POOL_V6}"
outside = "{PUBLIC_V6}"

[nat-log]
file = "{log}"
"#
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_upf_takes_it() {
        for driver in [Driver::AfPacket, Driver::AfXdp] {
            assert_eq!(driver.to_string().parse(), Ok(driver));
            let xdp = driver == Driver::AfXdp;
            let text = toml(driver, 2, xdp, xdp, Path::new("/run/millrace/lab-x/ctl.sock"));
            let config = config::parse("lab", &text, &[], &[]).unwrap_or_else(|report| panic!("{report}"));
            assert_eq!((config.ports.len(), config.interfaces.len(), config.routes.len()), (2, 2, 2));
            assert!(config.n4.allows(address::SMF_N4.into()) && !config.n4.allows(address::DN.into()));
            assert!(address::STORM_N4.iter().all(|&smf| config.n4.allows(smf.into()) == xdp));
            assert!(config.routes.iter().all(|route| config.interfaces[route.interface].name == "n6"));
            assert_eq!(config.socket.as_deref(), Some(Path::new("/run/millrace/lab-x/ctl.sock")));
            assert_eq!(config.workers.workers(), 2);
            assert_eq!(config.nat.pools.len(), usize::from(driver == Driver::AfXdp));
        }
        assert!("tap".parse::<Driver>().is_err());
    }
}
