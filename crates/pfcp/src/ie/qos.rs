//! Gates and bit rates.

/// Gate Status (§8.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GateStatus {
    /// 0 is open on the wire.
    pub uplink_closed: bool,
    /// 0 is open on the wire.
    pub downlink_closed: bool,
}

/// MBR or GBR (§8.2.8, §8.2.9): kbit/s, 40 bits each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BitRate {
    /// Uplink, kbit/s.
    pub uplink_kbps: u64,
    /// Downlink, kbit/s.
    pub downlink_kbps: u64,
}
