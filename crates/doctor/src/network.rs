//! The kernel's network: interfaces, and N4's sockets.

use crate::{Area, Finding, Verdict, size};
use machine::Machine;
use machine::interfaces::Interface;

/// Interfaces that are listed.
const LISTED: usize = 64;

pub(crate) fn examine(machine: &Machine, findings: &mut Vec<Finding>) {
    findings.extend(machine.interfaces.iter().take(LISTED).map(interface));
    if machine.interfaces.len() > LISTED {
        let found = format!("{} more", machine.interfaces.len() - LISTED);
        findings.push(Finding::ok(Area::Network, "interfaces", found, "they are in --json"));
    }
    findings.extend(machine.kernel.rmem_max.map(buffer));
}

fn interface(interface: &Interface) -> Finding {
    let mut parts = vec![interface.driver.clone().unwrap_or_else(|| "virtual".into())];
    parts.extend(interface.mtu.map(|mtu| format!("MTU {mtu}")));
    parts.push(if interface.is_up { interface.state.clone() } else { "not set up".into() });
    parts.extend(interface.megabits.map(|megabits| format!("{megabits} Mbit/s")));
    let (rx, tx) = (interface.rx_queues, interface.tx_queues);
    if rx + tx > 0 {
        parts.push(format!("{rx} receive and {tx} transmit queues"));
    }
    let reason = "can be a port: driver = \"af_packet\" works with every interface, \"af_xdp\" is faster";
    Finding::ok(Area::Network, format!("interface {}", interface.name), parts.join(", "), reason)
}

fn buffer(limit: u64) -> Finding {
    let wanted = upf::SOCKET_BUFFER as u64;
    let reason = format!(
        "N4 asks for a receive buffer of {}, a burst of some thousand requests; what finds no room is lost, and SMFs send it \
                          again after T1",
        size(wanted)
    );
    let finding =
        Finding::ok(Area::Network, "N4's receive buffer", format!("at most {}", kilobytes(limit)), reason);
    if limit >= wanted {
        finding
    } else {
        finding.but(Verdict::CouldBeBetter, format!("# sysctl -w net.core.rmem_max={wanted}"))
    }
}

fn kilobytes(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { size(bytes) }
}
