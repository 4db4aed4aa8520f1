//! What this machine's kernel says of its own addresses.
//!
//! A kernel interface that a port is made of is still the kernel's. One that has an address of this UPF's answers packets to it as
//! well: every G-PDU with an ICMP error, every connection with a reset.

use config::{Config, DeviceName, InterfaceAddress, Port};
use machine::files::Files;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Bytes of a table that are read: a router with all routes of the Internet has some hundred times as many as a UPF.
const MOST: u64 = 256 << 20;

/// Where the kernel tells of this process's network namespace.
pub const PROC_NET: &str = "/proc/thread-self/net";

/// Our addresses that the kernel has too, if any port is made of a kernel interface.
pub fn shared_addresses(config: &Config, proc_net: &Path) -> Vec<IpAddr> {
    let kernel = |device: &DeviceName| matches!(device, DeviceName::Vdev { arguments, .. } if arguments.contains("iface="));
    let on_kernel =
        |port: &Port| kernel(&port.device) || port.bond.iter().flat_map(|bond| &bond.members).any(kernel);
    if !config.ports.iter().any(on_kernel) {
        return Vec::new();
    }
    let kernels = addresses(proc_net);
    let ours = config.interfaces.iter().flat_map(|interface| &interface.addresses);
    ours.map(InterfaceAddress::address).filter(|address| kernels.contains(address)).collect()
}

/// The kernel's addresses; none where it doesn't say.
pub fn addresses(proc_net: &Path) -> Vec<IpAddr> {
    let files = Files(proc_net);
    let read = |file| {
        let bytes = files.bytes(file, MOST).ok().flatten().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut addresses: Vec<IpAddr> = ipv4(&read("fib_trie")).into_iter().map(IpAddr::V4).collect();
    addresses.extend(ipv6(&read("if_inet6")).map(IpAddr::V6));
    addresses
}

/// Leaves of the routing table that are hosts, and this one.
fn ipv4(trie: &str) -> Vec<Ipv4Addr> {
    let (mut leaf, mut found) = (None::<Ipv4Addr>, Vec::new());
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(leaf);
        }
    }
    found
}

/// The first column.
fn ipv6(table: &str) -> impl Iterator<Item = Ipv6Addr> + '_ {
    let address = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    table.lines().filter_map(address).map(Ipv6Addr::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TRIE: &str = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 192.0.2.0/24 2 0 2\n        \
                        |-- 192.0.2.0\n           /24 link UNICAST\n        |-- 192.0.2.1\n           /32 host LOCAL\n        \
                        |-- 192.0.2.255\n           /32 link BROADCAST\nLocal:\n  +-- 127.0.0.0/8 2 0 2\n     |-- 127.0.0.1\n        \
                        /32 host LOCAL\n";

    #[test]
    fn tables_are_read() {
        assert_eq!(ipv4(TRIE), [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::LOCALHOST]);
        assert!(ipv4("nonsense\n|-- x\n/32 host LOCAL\n").is_empty());
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000600000000000000000001 02 40 00 80 n6\n\n-\n";
        let found: Vec<_> = ipv6(table).collect();
        assert_eq!(found, [Ipv6Addr::LOCALHOST, "2001:db8:6::1".parse::<Ipv6Addr>().unwrap()]);
        // What the kernel that runs this says, whatever else it has.
        assert!(addresses(Path::new(PROC_NET)).iter().all(|address| !address.is_unspecified()));
    }

    #[test]
    fn only_ours_on_the_kernels_interfaces_are_told() {
        let proc_net = std::env::temp_dir().join(format!("millrace-proc-net-{}", std::process::id()));
        std::fs::create_dir_all(&proc_net).unwrap();
        std::fs::write(proc_net.join("fib_trie"), TRIE).unwrap();
        let shared = |device: &str| {
            let text = format!(
                "[[port]]\nname = 'p'\n{device}\n[[interface]]\nname = 'i'\nport = 'p'\nroles = ['n3', 'n6']\n\
                 addresses = ['192.0.2.1/24', '192.0.2.9/24', '2001:db8:6::1/64']\n"
            );
            shared_addresses(&config::parse("upf.toml", &text, &[], &[]).unwrap(), &proc_net)
        };
        assert_eq!(shared("driver = 'af_packet'\niface = 'n3'"), [IpAddr::from([192, 0, 2, 1])]);
        assert_eq!(
            shared("bond = {mode = 'balance', members = ['net_af_packet0,iface=n3']}"),
            [IpAddr::from([192, 0, 2, 1])]
        );
        assert!(shared("device = '0000:01:00.0'").is_empty());
        std::fs::remove_dir_all(proc_net).unwrap();
    }
}
