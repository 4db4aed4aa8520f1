//! Why a packet was not forwarded: one enum, one counter each, one label, one row of documentation.

counters::labels! {
    /// Why a packet was dropped, or diverted from the fast path for good.
    pub enum Reason: "reason" {
        // The frame and its headers.
        Malformed = "malformed", "A header's length, version or checksum contradicts the packet's bytes. Look at the sender, or at a cable or NIC that corrupts.";
        NotForUs = "not-for-us", "The destination MAC address is another station's: a switch floods, or the port is promiscuous.";
        UnknownEtherType = "unknown-ethertype", "Neither IPv4, IPv6 nor ARP (LLDP, STP and their like land here).";
        UnknownVlan = "unknown-vlan", "No interface is configured for this port and VLAN. Add one to the configuration or prune the VLAN on the switch.";
        UnsupportedProtocol = "unsupported-protocol", "A packet to one of our own addresses that is neither GTP-U nor an ICMP message we answer.";
        MartianSource = "martian-source", "A packet to us or from the data network whose source is nobody's address (0/8, loopback, multicast, broadcast, reserved, link-local) or our own (RFC 1812 §5.3.7, RFC 6890): a loop or a forgery.";
        UeSourceOutside = "ue-source-outside", "A packet from the data network whose source is in a UE pool, or a public address of UEs: forged, for UEs' packets come in tunnels. If such hosts are real, the pool is too wide.";
        MartianFarEnd = "martian-far-end", "A GTP-U packet whose outer source is nobody's address (unspecified, loopback, multicast, broadcast, reserved) or our own.";
        IgnoredMulticast = "ignored-multicast", "Link-local multicast that a UPF has no part in (router solicitations on N6, MLD, mDNS).";
        ForeignNeighbour = "foreign-neighbour", "ARP or neighbour discovery of an address that is not on the interface's link. A misconfigured station, or one that wants to be many.";
        // GTP-U.
        GtpuVersion = "gtpu-version", "Not GTPv1-U (GTP' or another version). The peer speaks something else on port 2152.";
        GtpuUnknownType = "gtpu-unknown-type", "A GTP-U message type that a UPF does not handle (TS 29.281 §6.1).";
        GtpuUnknownExtension = "gtpu-unknown-extension", "A GTP-U extension header that must be understood and is not; answered by Supported Extension Headers Notification.";
        UnknownTeid = "unknown-teid", "No tunnel with this TEID; answered by an Error Indication. Common after a restart or a released session; otherwise the peer is out of step with the SMF.";
        UnknownTunnel = "unknown-tunnel", "An End Marker for a tunnel that no session has.";
        ForeignFarEnd = "foreign-far-end", "A G-PDU or End Marker from another address than the tunnel's session knows, which `[n3] check-source` asks to drop. A forger who knows the TEID; or a gNB that sends from other addresses than it receives at, or serves a UE that moved to it before the SMF says so.";
        ForeignErrorIndication = "foreign-error-indication", "An Error Indication that doesn't come from the far end whose tunnel it names: not believed.";
        ErrorRateLimited = "error-rate-limited", "An answer (echo, error indication, ICMP, ND) was not sent, or a far end's Error Indication not passed on, because its rate limit was reached.";
        // Finding the session.
        UnknownUe = "unknown-ue", "A packet from the data network to an address of a UE pool that no session has.";
        NotN6 = "not-n6", "A plain IP packet on an interface without the N6 role. Give the interface the role, or fix the routing of its neighbours.";
        NotN3 = "not-n3", "A GTP-U packet on an interface with neither the N3 nor the N9 role.";
        NoRule = "no-rule", "The session has no PDR that matches this packet. Compare the session's rules with the packet's QFI and 5-tuple.";
        // Enforcement.
        SpoofedSource = "spoofed-source", "The UE sent from an address that is not its own (neither its address, its prefix nor a framed route).";
        MartianDestination = "martian-destination", "A UE addressed what is no host (0/8, loopback, multicast, broadcast, reserved, link-local), by a rule that routes its packets. Multicast that is wanted needs a `[[route]]`.";
        UeToUe = "ue-to-ue", "A UE addressed another one, and the pool of one of them has ue-to-ue = false.";
        OwnAddress = "own-address", "A UE addressed Millrace itself (N3, N4, N6 or N9 address); user traffic never reaches these.";
        GateClosed = "gate-closed", "A QER closes the gate for this direction.";
        NewFlowInOverload = "new-flow-in-overload", "The first packet of a flow, while its port's receive queue was filling: known flows go first. A flood of new flows, or too few workers.";
        RateExceeded = "rate-exceeded", "A QER's maximum bit rate was exceeded.";
        QuotaExhausted = "quota-exhausted", "A URR's quota is used up; the SMF has to grant a new one.";
        FarDrop = "far-drop", "The FAR says DROP.";
        FarUnresolved = "far-unresolved", "The FAR forwards to ACCESS, and the SMF has not told the gNB's tunnel yet.";
        RedirectReset = "redirect-reset", "The FAR redirects, and the UE's TCP connection is none of HTTP (TLS), or was there before: it was reset. The SMF should let such UEs reach the page that it redirects to by another rule.";
        RedirectDropped = "redirect-dropped", "The FAR redirects, and the packet is not TCP (QUIC and other UDP, ICMP) or a fragment: only HTTP can be redirected.";
        // Buffering.
        BufferFull = "buffer-full", "The session's buffer (the SMF's suggestion, bounded by configuration) is full.";
        BufferExhausted = "buffer-exhausted", "The worker's buffer for all sessions is full. Raise the limit or the number of packet buffers.";
        BufferDiscarded = "buffer-discarded", "A buffered packet was discarded: DROBU, a rule that drops, or the end of the session.";
        // The way out.
        NotTowardsN6 = "not-towards-n6", "A UE's packet without a tunnel whose route leads out of an interface without the N6 role, or of one that does not serve the network instance that the FAR names: gNBs, other UPFs and their management are out of every UE's reach. Many of them: a UE that attacks, or a route of N6 traffic over N3.";
        CongestionNotEct = "congestion-not-ect", "A tunnel's outer header says Congestion Experienced, and the UE's packet in it can't be marked (Not-ECT): a drop tells its sender (RFC 6040 §4.2).";
        NoRoute = "no-route", "No route leads to the destination (inner address, or GTP-U peer).";
        NeighbourPending = "neighbour-pending", "Too many packets waited for neighbours' MAC addresses, or for this one's, and this one for longest; or its sender looked for too many new neighbours in a second.";
        NeighbourUnreachable = "neighbour-unreachable", "The next hop does not answer ARP or neighbour solicitations.";
        TtlExpired = "ttl-expired", "TTL or hop limit ran out; answered by ICMP time exceeded.";
        PacketTooBig = "packet-too-big", "Larger than the MTU of the way out and not to be fragmented; answered by ICMP.";
        NoHeadroom = "no-headroom", "The packet buffer has no room for the tunnel headers. Raise the headroom.";
        NoBuffer = "no-buffer", "No packet buffer was free for a packet of our own making (fragments, answers, questions to neighbours): the pool is exhausted. Raise the number of buffers.";
        TooManyPeers = "too-many-peers", "The table of GTP-U peers is full. Raise its limit.";
        // Fragments.
        FragmentTimeout = "fragment-timeout", "The other fragments of an outer packet did not arrive in time.";
        FragmentOverlap = "fragment-overlap", "Fragments that overlap or contradict each other: an attack, never a network.";
        FragmentLimit = "fragment-limit", "Too many fragments were waiting, and this one's packet for longest: a flood, or raise the MTU between the gNBs and the UPF so that they need not fragment.";
        FragmentToUs = "fragment-to-us", "A fragment of a packet to one of our own addresses, on an interface without the N3 and N9 roles: only tunnels' packets are put together.";
        FragmentWithoutFirst = "fragment-without-first", "A later fragment of a filtered session's packet, or of one that NAT translates, whose first fragment was not seen.";
        // Translation on N6.
        NatNoMapping = "nat-no-mapping", "A packet to a public address and port that stands for no UE's, or a UE's ICMP error or TCP reset that belongs to no mapping. Scans end here; otherwise the mapping has timed out.";
        NatUnsolicited = "nat-unsolicited", "A TCP connection from outside to a public port that stands for no UE's; not answered (RFC 5382 REQ-4). Configure port forwarding if it is wanted.";
        NatFiltered = "nat-filtered", "A packet to a UE's public port from a host that the UE has not sent to, with address-dependent filtering.";
        NatUnsupported = "nat-unsupported", "A protocol without ports, which only a static entry for the whole address can translate, or an IPv6 address that has no translation (RFC 6296 §3.4, §3.5).";
        NatUserLimit = "nat-user-limit", "All ports of the UE's blocks are taken and it may have no more blocks. Raise blocks-per-ue or the block size.";
        NatExhausted = "nat-exhausted", "The UE's shard has no free block of ports on the UE's public address, or the table of mappings is full. Enlarge the pool, or make blocks smaller.";
        // Ownership.
        NotOwned = "not-owned", "A packet of a shard that no worker owns: its worker died and nobody could inherit from it.";
        MoveParkingFull = "move-parking-full", "A packet of a shard that was on its way to another worker, which had no room to park it. Raise `[workers] parked-packets`.";
        LostWithWorker = "lost-with-worker", "A packet in the rings of a worker that died.";
        LeftAtStop = "left-at-stop", "A packet on its way from one worker to another when all were told to stop: what comes later than ten milliseconds after that is not waited for.";
        HandOffRingFull = "hand-off-ring-full", "The ring to the worker that owns the packet's shard is full: that worker is overloaded.";
        TxQueueFull = "tx-queue-full", "The port's transmit queue stayed full: the link is slower than what is sent to it.";
    }
}
