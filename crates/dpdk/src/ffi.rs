//! The shim's functions, as `shim/shim.c` defines them.

use std::ffi::{c_char, c_int, c_uint};

/// The most members of a port.
pub const MAX_MEMBERS: usize = 8;

/// DPDK's `struct rte_mbuf`: its layout is in [`crate::mbuf`].
#[repr(C, align(64))]
pub(crate) struct RteMbuf {
    pub(crate) buf_addr: *mut u8,
    _iova: u64,
    pub(crate) data_off: u16,
    _refcnt: u16,
    _nb_segs: u16,
    _port: u16,
    pub(crate) ol_flags: u64,
    _packet_type: u32,
    pub(crate) pkt_len: u32,
    pub(crate) data_len: u16,
    _vlan_tci: u16,
    pub(crate) rss: u32,
    pub(crate) mark: u32,
    _vlan_tci_outer: u16,
    pub(crate) buf_len: u16,
    _rest: [u64; 9],
}

// The same offsets are asserted against DPDK's headers in the shim.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<RteMbuf>() == 128);
    assert!(offset_of!(RteMbuf, buf_addr) == 0);
    assert!(offset_of!(RteMbuf, data_off) == 16);
    assert!(offset_of!(RteMbuf, ol_flags) == 24);
    assert!(offset_of!(RteMbuf, pkt_len) == 36);
    assert!(offset_of!(RteMbuf, data_len) == 40);
    assert!(offset_of!(RteMbuf, rss) == 44);
    assert!(offset_of!(RteMbuf, mark) == 48);
    assert!(offset_of!(RteMbuf, buf_len) == 54);
};

/// `RTE_MBUF_F_RX_RSS_HASH`.
pub(crate) const RX_RSS_HASH: u64 = 1 << 1;

/// `RTE_MBUF_F_RX_FDIR_ID`: a rule has set a mark.
pub(crate) const RX_MARK: u64 = 1 << 13;

/// An opaque `struct rte_mempool`.
#[repr(C)]
pub(crate) struct RteMempool {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortConfig {
    pub(crate) queues: u16,
    pub(crate) rx_queues: u16,
    pub(crate) rx_descriptors: u16,
    pub(crate) tx_descriptors: u16,
    pub(crate) mtu: u16,
    pub(crate) promiscuous: u8,
    pub(crate) mtu_by_kernel: u8,
}
const _: () = assert!(std::mem::size_of::<PortConfig>() == 12);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawPortInfo {
    pub(crate) rss_offloads: u64,
    pub(crate) max_rx_pktlen: u32,
    pub(crate) socket: i32,
    pub(crate) max_rx_queues: u16,
    pub(crate) max_tx_queues: u16,
    pub(crate) max_mtu: u16,
    pub(crate) min_mtu: u16,
    pub(crate) mac: [u8; 6],
    pub(crate) driver: [u8; 34],
}
const _: () = assert!(std::mem::size_of::<RawPortInfo>() == 64);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawStats {
    pub(crate) rx_packets: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) rx_missed: u64,
    pub(crate) rx_errors: u64,
    pub(crate) tx_packets: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) tx_errors: u64,
}

/// `struct mr_interface`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawInterface {
    pub(crate) mtu: u32,
    pub(crate) up: u8,
    pub(crate) merges: u8,
    pub(crate) promiscuous: u8,
    _reserved: u8,
}
const _: () = assert!(std::mem::size_of::<RawInterface>() == 8);

/// An opaque `struct mr_ipsec_mb` of `shim/ipsec_mb.c`.
#[repr(C)]
pub(crate) struct IpsecMb {
    _opaque: [u8; 0],
}

/// `struct mr_counter_packet` of `shim/ipsec_mb.c`: a key or round keys, the other is null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterPacket {
    pub(crate) key: *const u8,
    pub(crate) round_keys: *const u8,
    pub(crate) data: *mut u8,
    pub(crate) length: u64,
    pub(crate) counter: [u8; 16],
}

unsafe extern "C" {
    pub(crate) fn mr_ipsec_mb_load(loaded: *mut *mut IpsecMb, version: *mut u32) -> c_int;
    pub(crate) fn mr_ipsec_mb_expand(it: *mut IpsecMb, key: *const u8, round_keys: *mut u8);
    pub(crate) fn mr_ipsec_mb_counter(it: *mut IpsecMb, packets: *const CounterPacket, count: u64) -> u64;
    pub(crate) fn mr_ipsec_mb_free(it: *mut IpsecMb);
    pub(crate) fn mr_interface(name: *const c_char, out: *mut RawInterface);
    pub(crate) fn mr_rings_sent_too(yes: i32);
    pub(crate) fn mr_rings_lost(port: u16, missed: *mut u64, cut: *mut u64);
    #[cfg(test)]
    pub(crate) fn mr_complete_checksum(frame: *mut u8, length: usize);
}

/// `struct mr_bond_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BondConfig {
    pub(crate) mode: u8,
    pub(crate) policy: u8,
    pub(crate) has_primary: u8,
    pub(crate) members: u8,
    pub(crate) primary: u16,
    pub(crate) poll_ms: u16,
    pub(crate) ports: [u16; MAX_MEMBERS],
    pub(crate) silence_ms: u16,
}
const _: () = assert!(std::mem::size_of::<BondConfig>() == 26);

/// `struct mr_member`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawMember {
    pub(crate) mbps: u32,
    pub(crate) link_up: u8,
    pub(crate) active: u8,
    _actor_state: u8,
    _partner_state: u8,
    pub(crate) partner: [u8; 6],
    _reserved: [u8; 2],
}
const _: () = assert!(std::mem::size_of::<RawMember>() == 16);

unsafe extern "C" {
    pub(crate) fn mr_bond_create(
        name: *const c_char,
        config: *const BondConfig,
        descriptors: u32,
        socket: c_int,
        bond: *mut u16,
        step: *mut *const c_char,
    ) -> c_int;
    pub(crate) fn mr_bond_watch(bond: u16, config: *const BondConfig) -> c_int;
    pub(crate) fn mr_bond_unwatch(bond: u16);
    pub(crate) fn mr_bond_member(bond: u16, mode: u8, member: u16, out: *mut RawMember);
}

unsafe extern "C" {
    pub(crate) fn mr_log_capture(echo: c_int) -> c_int;
    pub(crate) fn mr_log_take(into: *mut u8, room: usize) -> usize;
    pub(crate) fn mr_huge_pages(bytes: usize) -> c_int;
    pub(crate) fn mr_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn mr_eal_cleanup() -> c_int;
    pub(crate) fn mr_runtime_dir() -> *const c_char;
    pub(crate) fn mr_version() -> *const c_char;
    pub(crate) fn mr_thread_register() -> c_int;
    pub(crate) fn mr_thread_unregister();
    pub(crate) fn mr_thread_is_registered() -> c_int;
    pub(crate) fn mr_pool_create(
        name: *const c_char,
        frames: c_uint,
        cache: c_uint,
        room: u16,
        socket: c_int,
        error: *mut c_int,
    ) -> *mut RteMempool;
    pub(crate) fn mr_pool_free(pool: *mut RteMempool) -> c_int;
    pub(crate) fn mr_pool_in_use(pool: *const RteMempool) -> c_uint;
    pub(crate) fn mr_alloc(pool: *mut RteMempool) -> *mut RteMbuf;
    pub(crate) fn mr_free(m: *mut RteMbuf);
    pub(crate) fn mr_port_probe(devargs: *const c_char, name: *const c_char, port: *mut u16) -> c_int;
    pub(crate) fn mr_port_info(port: u16, out: *mut RawPortInfo) -> c_int;
    pub(crate) fn mr_port_start(
        port: u16,
        config: *const PortConfig,
        pool: *mut RteMempool,
        step: *mut *const c_char,
    ) -> c_int;
    pub(crate) fn mr_port_stop(port: u16) -> c_int;
    pub(crate) fn mr_port_close(port: u16);
    pub(crate) fn mr_rx(port: u16, queue: u16, into: *mut *mut RteMbuf, max: u16, lost: *mut u64) -> u16;
    pub(crate) fn mr_tx(port: u16, queue: u16, from: *mut *mut RteMbuf, n: u16) -> u16;
    pub(crate) fn mr_port_link(port: u16, mbps: *mut u32) -> c_int;
    pub(crate) fn mr_reta_size(port: u16) -> u16;
    pub(crate) fn mr_reta_write(port: u16, queues: *const u16, entries: u16) -> c_int;
    pub(crate) fn mr_reta_read(port: u16, queues: *mut u16, entries: u16) -> c_int;
    pub(crate) fn mr_rx_descriptors(port: u16, queue: u16, wanted: u16) -> c_int;
    pub(crate) fn mr_rx_done(port: u16, queue: u16, offset: u16) -> c_int;
    pub(crate) fn mr_tx_descriptors(port: u16, wanted: u16) -> u16;
    pub(crate) fn mr_tx_undone(port: u16, queue: u16, offset: u16) -> c_int;
    pub(crate) fn mr_port_stats(port: u16, out: *mut RawStats) -> c_int;
}

/// Meters of a rule, at most.
pub(crate) const METERS: usize = 3;

/// `struct mr_rule`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRule {
    pub(crate) decap: *const u8,
    pub(crate) encap: *const u8,
    pub(crate) rss_key: *const u8,
    pub(crate) counter: *const RteFlowActionHandle,
    pub(crate) teid: u32,
    pub(crate) mark: u32,
    pub(crate) meters: [u32; METERS],
    pub(crate) decap_len: u16,
    pub(crate) encap_len: u16,
    pub(crate) vlan: u16,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) queue: u16,
    pub(crate) to_port: u16,
    pub(crate) rss_queues: u16,
    pub(crate) mac: [u8; 6],
    pub(crate) outer_destination: [u8; 16],
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) has_mac: u8,
    pub(crate) has_outer_destination: u8,
    pub(crate) has_teid: u8,
    pub(crate) has_source: u8,
    pub(crate) has_destination: u8,
    pub(crate) has_protocol: u8,
    pub(crate) has_ports: u8,
    pub(crate) tunnel: u8,
    pub(crate) outer_v6: u8,
    pub(crate) v6: u8,
    pub(crate) qfi: u8,
    pub(crate) protocol: u8,
    pub(crate) tos: u8,
    pub(crate) tos_mask: u8,
    pub(crate) exact: u8,
    pub(crate) rss_inner: u8,
    pub(crate) rss_source: u8,
    pub(crate) actions: [u8; 10],
    pub(crate) priority: u8,
    pub(crate) reserved: [u8; 2],
}
const _: () = assert!(std::mem::size_of::<RawRule>() == 152);

/// `struct mr_steer`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawSteer {
    pub(crate) rss_key: *const u8,
    pub(crate) first_queue: u16,
    pub(crate) queues: u16,
    pub(crate) ether_type: u16,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) rank: u8,
    pub(crate) tagged: u8,
    pub(crate) ip: u8,
    pub(crate) has_destination: u8,
    pub(crate) destination: [u8; 16],
    pub(crate) tos: u8,
    pub(crate) tos_mask: u8,
    pub(crate) hops: u8,
    pub(crate) protocol: u8,
    pub(crate) icmp6: u8,
    pub(crate) message: u8,
    pub(crate) inside: u8,
    pub(crate) hash_source: u8,
    pub(crate) reserved: [u8; 2],
}
const _: () = assert!(std::mem::size_of::<RawSteer>() == 48);

impl RawSteer {
    /// All packets, to no queue.
    pub(crate) const ALL: Self = Self {
        rss_key: std::ptr::null(),
        first_queue: 0,
        queues: 0,
        ether_type: 0,
        source_port: 0,
        destination_port: 0,
        rank: 0,
        tagged: 0,
        ip: 0,
        has_destination: 0,
        destination: [0; 16],
        tos: 0,
        tos_mask: 0,
        hops: 0,
        protocol: 0,
        icmp6: 0,
        message: 0,
        inside: 0,
        hash_source: 0,
        reserved: [0; 2],
    };
}

/// `struct mr_flow_error`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawFlowError {
    pub(crate) code: i32,
    pub(crate) kind: u32,
    pub(crate) part: u32,
    pub(crate) message: [u8; 116],
}
const _: () = assert!(std::mem::size_of::<RawFlowError>() == 128);

impl RawFlowError {
    pub(crate) const NONE: Self = Self { code: 0, kind: 0, part: 0, message: [0; 116] };
}

/// An opaque `struct rte_flow`.
#[repr(C)]
pub(crate) struct RteFlowRule {
    _opaque: [u8; 0],
}

/// An opaque `struct rte_flow_action_handle`.
#[repr(C)]
pub(crate) struct RteFlowActionHandle {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    pub(crate) fn mr_counter_create(port: u16, error: *mut RawFlowError) -> *mut RteFlowActionHandle;
    pub(crate) fn mr_counter_destroy(
        port: u16,
        counter: *mut RteFlowActionHandle,
        error: *mut RawFlowError,
    ) -> c_int;
    pub(crate) fn mr_counter_read(
        port: u16,
        counter: *const RteFlowActionHandle,
        packets: *mut u64,
        bytes: *mut u64,
        error: *mut RawFlowError,
    ) -> c_int;
    pub(crate) fn mr_flow_validate(port: u16, rule: *const RawRule, error: *mut RawFlowError) -> c_int;
    pub(crate) fn mr_flow_create(
        port: u16,
        rule: *const RawRule,
        error: *mut RawFlowError,
    ) -> *mut RteFlowRule;
    pub(crate) fn mr_steer_validate(port: u16, rule: *const RawSteer, error: *mut RawFlowError) -> c_int;
    pub(crate) fn mr_steer_create(
        port: u16,
        rule: *const RawSteer,
        error: *mut RawFlowError,
    ) -> *mut RteFlowRule;
    pub(crate) fn mr_flow_destroy(port: u16, flow: *mut RteFlowRule, error: *mut RawFlowError) -> c_int;
    pub(crate) fn mr_meter_able(port: u16) -> c_int;
    pub(crate) fn mr_meter_create(
        port: u16,
        meter: u32,
        bytes_per_second: u64,
        burst: u64,
        error: *mut RawFlowError,
    ) -> c_int;
    pub(crate) fn mr_meter_destroy(port: u16, meter: u32, error: *mut RawFlowError) -> c_int;
    pub(crate) fn mr_meter_dropped(
        port: u16,
        meter: u32,
        packets: *mut u64,
        bytes: *mut u64,
        error: *mut RawFlowError,
    ) -> c_int;
    pub(crate) fn mr_flow_count(
        port: u16,
        flow: *mut RteFlowRule,
        packets: *mut u64,
        bytes: *mut u64,
        error: *mut RawFlowError,
    ) -> c_int;
}

/// `shim/peer.c`: look-up tables for measuring beside ours.
pub(crate) mod peer {
    use std::ffi::{c_int, c_void};

    /// An opaque `struct rte_hash`.
    #[repr(C)]
    pub(crate) struct RteHash {
        _opaque: [u8; 0],
    }

    /// An opaque `struct rte_lpm`.
    #[repr(C)]
    pub(crate) struct RteLpm {
        _opaque: [u8; 0],
    }

    /// An opaque `struct rte_fib`.
    #[repr(C)]
    pub(crate) struct RteFib {
        _opaque: [u8; 0],
    }

    /// An opaque `struct rte_lpm6`.
    #[repr(C)]
    pub(crate) struct RteLpm6 {
        _opaque: [u8; 0],
    }

    /// An opaque `struct rte_fib6`.
    #[repr(C)]
    pub(crate) struct RteFib6 {
        _opaque: [u8; 0],
    }

    unsafe extern "C" {
        pub(crate) fn mr_peer_heap(bytes: usize, socket: *mut c_int) -> c_int;
        pub(crate) fn mr_peer_wide() -> c_int;
        pub(crate) fn mr_peer_hash(
            entries: u32,
            key_length: u32,
            socket: c_int,
            error: *mut c_int,
        ) -> *mut RteHash;
        pub(crate) fn mr_peer_hash_add(hash: *mut RteHash, key: *const c_void) -> i32;
        pub(crate) fn mr_peer_hash_find(
            hash: *const RteHash,
            keys: *const u8,
            stride: usize,
            count: usize,
            out: *mut i32,
        );
        pub(crate) fn mr_peer_hash_free(hash: *mut RteHash);
        pub(crate) fn mr_peer_lpm(groups: u32, socket: c_int, error: *mut c_int) -> *mut RteLpm;
        pub(crate) fn mr_peer_lpm_fill(
            lpm: *mut RteLpm,
            prefixes: *const u32,
            lengths: *const u8,
            values: *const u16,
            count: usize,
            groups: u32,
        ) -> c_int;
        pub(crate) fn mr_peer_lpm_find(
            lpm: *const RteLpm,
            addresses: *const u32,
            count: usize,
            out: *mut u32,
        );
        pub(crate) fn mr_peer_lpm_free(lpm: *mut RteLpm);
        pub(crate) fn mr_peer_fib(
            routes: u32,
            groups: u32,
            bytes: c_int,
            vector: c_int,
            socket: c_int,
            error: *mut c_int,
        ) -> *mut RteFib;
        pub(crate) fn mr_peer_fib_add(fib: *mut RteFib, prefix: u32, length: u8, value: u64) -> c_int;
        pub(crate) fn mr_peer_fib_find(fib: *mut RteFib, addresses: *mut u32, count: usize, out: *mut u64);
        pub(crate) fn mr_peer_fib_free(fib: *mut RteFib);
        pub(crate) fn mr_peer_lpm6(
            routes: u32,
            groups: u32,
            socket: c_int,
            error: *mut c_int,
        ) -> *mut RteLpm6;
        pub(crate) fn mr_peer_lpm6_add(lpm: *mut RteLpm6, prefix: *const u8, length: u8, value: u32)
        -> c_int;
        pub(crate) fn mr_peer_lpm6_find(
            lpm: *const RteLpm6,
            addresses: *mut [u8; 16],
            count: usize,
            out: *mut i32,
        );
        pub(crate) fn mr_peer_lpm6_free(lpm: *mut RteLpm6);
        pub(crate) fn mr_peer_fib6(
            routes: u32,
            groups: u32,
            vector: c_int,
            socket: c_int,
            error: *mut c_int,
        ) -> *mut RteFib6;
        pub(crate) fn mr_peer_fib6_add(fib: *mut RteFib6, prefix: *const u8, length: u8, value: u64)
        -> c_int;
        pub(crate) fn mr_peer_fib6_find(
            fib: *mut RteFib6,
            addresses: *mut [u8; 16],
            count: usize,
            out: *mut u64,
        );
        pub(crate) fn mr_peer_fib6_free(fib: *mut RteFib6);
    }
}
