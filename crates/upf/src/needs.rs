//! How much memory a configuration takes at the start, and whether there is so much.

use config::{Config, LookupBy, Memory, Port, Wrong};
use machine::memory::Room;

/// Packets that each port's pool must have: those in its queues, what is buffered for UEs, what waits for any port to be sent or for a device to
/// look it up, and some in hand; and beside all these, the share that workers may hold back.
pub fn frames(config: &Config, port: &Port) -> u32 {
    let descriptors =
        u32::from(port.queues) * (u32::from(port.rx_descriptors) + u32::from(port.tx_descriptors));
    let steered = config.qos.steering.extra_queues(port.queues) as u32 * u32::from(port.rx_descriptors);
    let waiting = config.qos.egress.frames().saturating_mul(config.ports.len() as u32);
    let workers = u32::from(config.workers.workers());
    let under_way = match config.lookup {
        LookupBy::Cpu => 0,
        LookupBy::Cuda | LookupBy::Auto => (engine::MOST_UNDER_WAY * io::BURST) as u32,
    };
    let waiting = waiting.saturating_add(256 + under_way).saturating_mul(workers);
    let needed = waiting.saturating_add(descriptors + steered + config.limits.buffered_packets + 4_096);
    needed.saturating_add(needed / (crate::HELD_SHARE as u32 - 1))
}

/// Bytes of packet buffers, and of what drivers have beside them.
pub fn buffer_bytes(config: &Config) -> u64 {
    bytes_with(config, config.limits.buffered_packets)
}

/// The same, if so many packets are buffered for UEs.
fn bytes_with(config: &Config, buffered: u32) -> u64 {
    let mut config = config.clone();
    config.limits.buffered_packets = buffered;
    // Headroom, private data and alignment come to less than 800 bytes a buffer.
    let bytes = |port: &Port| {
        // For LACP's own packets, each member of a port has about a kilobyte per transmit descriptor.
        let members = port.bond.as_ref().map_or(0, |bond| bond.members.len() as u64);
        let descriptors = u64::from(port.queues) * u64::from(port.tx_descriptors) + 256;
        u64::from(frames(&config, port)) * (u64::from(port.mtu) + 800) + members * descriptors * 1024
    };
    config.ports.iter().map(bytes).sum::<u64>() * 5 / 4 + (64 << 20)
}

/// What of the memory that is taken at the start there is no room for, if anything: the key to change, and what to say.
pub fn exceeds(config: &Config, room: &Room) -> Option<(&'static [&'static str], Wrong)> {
    let flow = u64::from(crate::BYTES_PER_FLOW);
    let wrong = |what, bytes: u64, available: u64, remedy| Wrong::Memory {
        what,
        megabytes: bytes >> 20,
        available: available >> 20,
        says: room.says.clone(),
        remedy,
    };
    let buffers = buffer_bytes(config);
    let are_huge = match config.memory {
        // DPDK says it if there are too few.
        Memory::HugePages => true,
        Memory::Auto => buffers <= room.huge,
        Memory::NoHuge => false,
    };
    let buffers = if are_huge { 0 } else { buffers };
    if buffers > room.ordinary {
        let without = bytes_with(config, 0);
        // Rounded up: what is said to fit does.
        let each = (buffers - without) / u64::from(config.limits.buffered_packets.max(1)) + 2;
        let fit = room.ordinary.saturating_sub(without) / each;
        let (key, remedy): (&[&str], _) = if fit > 0 {
            let remedy = format!("lower `limits.buffered-packets` to {fit} or less, or give it more memory");
            (&["limits", "buffered-packets"], remedy)
        } else {
            let remedy = "fewer or shorter queues (`queues`, `rx-descriptors`, `tx-descriptors`, [qos]), a smaller `mtu`, fewer \
                          workers, or more memory";
            (&["port"], remedy.into())
        };
        return Some((key, wrong("packet buffers", buffers, room.ordinary, remedy)));
    }
    let (flows, left) = (u64::from(config.limits.flows_reserved) * flow, room.ordinary - buffers);
    if flows > left {
        let remedy = format!(
            "lower `limits.flows-reserved` to {} or less: others are taken as flows come",
            left / flow
        );
        return Some((&["limits", "flows-reserved"], wrong("flow entries", flows, left, remedy)));
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_refused_with_what_would_fit() {
        let config = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            config::parse("example", config::EXAMPLE, &[], &set).unwrap()
        };
        let room = Room { ordinary: 4 << 30, says: "the test".into(), huge: 0 };
        assert!(exceeds(&config(&[]), &room).is_none());
        let much = ["limits.buffered-packets=16000000", "limits.buffered-packets-per-session=64"];
        let (key, wrong) = exceeds(&config(&much), &room).unwrap();
        assert_eq!(key, ["limits", "buffered-packets"]);
        assert!(wrong.to_string().contains("MB, and there are 4096 MB (the test)"), "{wrong}");
        // What it says does fit, and a little more doesn't.
        let help = wrong.help().unwrap();
        let fit: u32 = help.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let fits = |packets: u32| {
            exceeds(&config(&[&format!("limits.buffered-packets={packets}")]), &room).is_none()
        };
        assert!(fits(fit) && !fits(fit + fit / 50), "{help}");
        // Huge pages hold them, or are asked for and DPDK says it.
        assert!(exceeds(&config(&much), &Room { huge: 1 << 40, ..room.clone() }).is_none());
        let small = Room { ordinary: 1 << 20, ..room.clone() };
        assert_eq!(exceeds(&config(&[]), &small).unwrap().0, ["port"]);
        let (key, wrong) =
            exceeds(&config(&["limits.flows-reserved=134217728", "limits.flows=134217728"]), &room).unwrap();
        assert_eq!(key, ["limits", "flows-reserved"], "{wrong}");
    }
}
