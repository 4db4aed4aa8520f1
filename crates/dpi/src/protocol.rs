//! The protocols that are known.
//!
//! This is the one list: a protocol has its row here, and its recogniser in [`crate::protocols`]. The table in the documentation is made of it.

use crate::Category;

macro_rules! protocols {
    ($($variant:ident = $name:literal, $category:ident, $about:literal;)*) => {
        /// A protocol; the numbers are not stable between versions, the names are.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Protocol {
            $(#[doc = $about] $variant,)*
        }

        impl Protocol {
            /// All, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As it is printed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// One line about it.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),* }
            }

            /// What it is for.
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category),* }
            }
        }
    };
}

// Kept in families, as `protocols` has its files; within a family in the order of names.
protocols! {
    // The web
    Dash = "DASH", Video, "Films in pieces over HTTP, ISO/IEC 23009-1";
    Dtls = "DTLS", Web, "TLS over datagrams, RFC 9147 and before";
    Grpc = "gRPC", Development, "Calls over HTTP/2";
    Hls = "HLS", Video, "Films in pieces over HTTP, RFC 8216";
    Http = "HTTP", Web, "Hypertext Transfer Protocol 1, RFC 9112";
    Http2 = "HTTP2", Web, "HTTP/2 in clear, RFC 9113";
    HttpConnect = "HTTP-CONNECT", Vpn, "A tunnel through an HTTP proxy, RFC 9110 §9.3.6";
    HttpProxy = "HTTP-proxy", Web, "HTTP that is sent to a proxy, RFC 9112 §3.2.2";
    Ipp = "IPP", System, "Internet Printing Protocol, RFC 8010";
    Ocsp = "OCSP", Security, "Online Certificate Status Protocol, RFC 6960";
    Quic = "QUIC", Web, "RFC 9000, RFC 9369, their drafts, and Google's before";
    Soap = "SOAP", Development, "Calls in XML over HTTP";
    Sstp = "SSTP", Vpn, "Secure Socket Tunneling Protocol, MS-SSTP";
    Tor = "Tor", Vpn, "Links to Tor's relays, by the shape of both sides";
    Tls = "TLS", Web, "Transport Layer Security, RFC 8446 and before";
    WebDav = "WebDAV", FileTransfer, "Web Distributed Authoring and Versioning, RFC 4918";
    WebSocket = "WebSocket", Web, "RFC 6455";
    // Names
    Dns = "DNS", Network, "Domain Name System, RFC 1035";
    Doh = "DoH", Network, "DNS over HTTPS, RFC 8484";
    Doq = "DoQ", Network, "DNS over QUIC, RFC 9250";
    Dot = "DoT", Network, "DNS over TLS, RFC 7858";
    Llmnr = "LLMNR", Network, "Link-Local Multicast Name Resolution, RFC 4795";
    Mdns = "mDNS", Network, "Multicast DNS, RFC 6762";
    // Mail and news
    Imap = "IMAP", Mail, "Internet Message Access Protocol, RFC 9051";
    Imaps = "IMAPS", Mail, "IMAP over TLS, RFC 8314";
    Nntp = "NNTP", News, "Network News Transfer Protocol, RFC 3977";
    Nntps = "NNTPS", News, "NNTP over TLS, RFC 4642";
    Pop3 = "POP3", Mail, "Post Office Protocol, RFC 1939";
    Pop3s = "POP3S", Mail, "POP3 over TLS, RFC 8314";
    Smtp = "SMTP", Mail, "Simple Mail Transfer Protocol, RFC 5321";
    Smtps = "SMTPS", Mail, "Submission of mail over TLS, RFC 8314";
    // Files
    Ftp = "FTP", FileTransfer, "File Transfer Protocol, RFC 959";
    FtpData = "FTP data", FileTransfer, "Where FTP sends files";
    Ftps = "FTPS", FileTransfer, "FTP over TLS, RFC 4217";
    // Calls and media
    H323 = "H.323", Voice, "Calls as the ITU-T has them: H.225.0, H.245 and RAS";
    Iax2 = "IAX2", Voice, "Inter-Asterisk eXchange, RFC 5456";
    Megaco = "Megaco", Voice, "Control of media gateways, H.248 and RFC 3525";
    Mgcp = "MGCP", Voice, "Media Gateway Control Protocol, RFC 3435";
    MpegTs = "MPEG-TS", Video, "Television over datagrams, ISO/IEC 13818-1";
    Rtcp = "RTCP", Voice, "Reports about RTP, RFC 3550";
    Rtmp = "RTMP", Video, "Adobe's Real-Time Messaging Protocol";
    Rtp = "RTP", Voice, "Sound and pictures, RFC 3550; also SRTP, RFC 3711";
    Rtsp = "RTSP", Video, "Real-Time Streaming Protocol, RFC 7826 and RFC 2326";
    Sip = "SIP", Voice, "Session Initiation Protocol, RFC 3261";
    Skinny = "Skinny", Voice, "Cisco's Skinny Client Control Protocol";
    Srtp = "SRTP", Voice, "RTP that is ciphered, RFC 3711, after a check of ways";
    Stun = "STUN", Voice, "How peers find each other, RFC 8489";
    Turn = "TURN", Voice, "A relay between peers, RFC 8656";
    WebRtc = "WebRTC", Voice, "Calls of browsers: ICE, then DTLS and SRTP, RFC 8827";
    Zrtp = "ZRTP", Voice, "Keys for RTP, RFC 6189";
    // Proxies
    ProxyHeader = "PROXY", Vpn, "HAProxy's line before a stream, which says whose it is";
    Socks = "SOCKS", Vpn, "Proxies of version 4 and 5, RFC 1928";
    // Terminals
    Ssh = "SSH", RemoteAccess, "Secure Shell, RFC 4253";
    // Databases and caches
    Bolt = "Bolt", Database, "Neo4j's graph queries";
    Cassandra = "Cassandra", Database, "Cassandra's binary protocol, CQL";
    ClickHouse = "ClickHouse", Database, "ClickHouse's native protocol";
    Drda = "DRDA", Database, "Distributed Relational Database Architecture: DB2, Derby";
    Elasticsearch = "Elasticsearch", Database, "What nodes of Elasticsearch say to each other";
    Firebird = "Firebird", Database, "Firebird and InterBase";
    Memcached = "Memcached", Database, "A cache of keys and values";
    MongoDb = "MongoDB", Database, "MongoDB's wire protocol";
    MySql = "MySQL", Database, "MySQL and MariaDB";
    Oracle = "Oracle TNS", Database, "Oracle's Transparent Network Substrate";
    PostgreSql = "PostgreSQL", Database, "PostgreSQL's frontend/backend protocol";
    Redis = "Redis", Database, "Redis and what speaks RESP";
    Tds = "TDS", Database, "Tabular Data Stream: SQL Server and Sybase, MS-TDS";
    ZooKeeper = "ZooKeeper", Database, "Coordination of what is distributed";
    // Queues, and calls between programs
    Amqp = "AMQP", Database, "Advanced Message Queuing Protocol, 0-9-1 and 1.0";
    Beanstalk = "Beanstalk", Database, "A queue of work";
    Gearman = "Gearman", Database, "Jobs for others to do";
    Giop = "GIOP", Database, "Corba's General Inter-ORB Protocol";
    IbmMq = "IBM MQ", Database, "IBM's queues, WebSphere MQ before";
    JavaRmi = "Java RMI", Database, "Calls between Java machines";
    JsonRpc = "JSON-RPC", Database, "Calls written in JSON, 2.0";
    Kafka = "Kafka", Database, "Streams of events";
    Mqtt = "MQTT", Things, "Message Queuing Telemetry Transport";
    MqttSn = "MQTT-SN", Things, "MQTT for networks of sensors";
    Nats = "NATS", Database, "Messages by subject";
    Nsq = "NSQ", Database, "A distributed queue";
    OpenWire = "OpenWire", Database, "ActiveMQ's own protocol";
    Rtps = "RTPS", Industrial, "What carries DDS, the Data Distribution Service";
    Stomp = "STOMP", Database, "Messages in text";
    Thrift = "Thrift", Database, "Calls in Apache Thrift's encodings";
    Zmtp = "ZMTP", Database, "What carries ZeroMQ";
    // Time, configuration, logs and management
    Capwap = "CAPWAP", Network, "Control of wireless access points, RFC 5415";
    CheckMk = "Checkmk", System, "What an agent of Checkmk says";
    Collectd = "collectd", System, "Measures of computers";
    Dhcp = "DHCP", Network, "Addresses for hosts, RFC 2131";
    Dhcpv6 = "DHCPv6", Network, "IPv6 addresses for hosts, RFC 8415";
    Ganglia = "Ganglia", System, "Measures of clusters";
    Ipmi = "RMCP", System, "Management of machines that may be off: IPMI and ASF";
    Lwapp = "LWAPP", Network, "What was before CAPWAP, RFC 5412";
    Munin = "Munin", System, "Measures of computers";
    NetFlow = "NetFlow", Network, "Records of flows, and IPFIX, RFC 7011";
    Nrpe = "NRPE", System, "Nagios asks other computers";
    Ntp = "NTP", Network, "Network Time Protocol, RFC 5905";
    Ptp = "PTP", Network, "Precision Time Protocol, IEEE 1588";
    Roughtime = "Roughtime", Network, "Rough time that is proven";
    SFlow = "sFlow", Network, "Samples of packets and counters";
    Snmp = "SNMP", Network, "Simple Network Management Protocol, all versions";
    StatsD = "StatsD", System, "Measures in one line each";
    Syslog = "Syslog", System, "Logs of others, RFC 5424 and 3164";
    Time = "Time", Network, "Seconds since 1900, RFC 868";
    Whois = "Whois", Network, "Who has this name or address? RFC 3912";
    Zabbix = "Zabbix", System, "Zabbix's agents and servers";
    // More terminals and desktops
    Adb = "ADB", RemoteAccess, "Android's debugger";
    Citrix = "Citrix", RemoteAccess, "Citrix's ICA and what carries it";
    NoMachine = "NoMachine", RemoteAccess, "Desktops by NX";
    Radmin = "Radmin", RemoteAccess, "Remote Administrator";
    Rdp = "RDP", RemoteAccess, "Remote Desktop Protocol, MS-RDPBCGR";
    RdpUdp = "RDP over UDP", RemoteAccess, "Remote Desktop Protocol in datagrams, MS-RDPEUDP";
    Rlogin = "rlogin", RemoteAccess, "BSD's terminals elsewhere, RFC 1282";
    Rsh = "RSH", RemoteAccess, "BSD's commands elsewhere";
    Spice = "SPICE", RemoteAccess, "Desktops of virtual machines";
    TeamViewer = "TeamViewer", RemoteAccess, "TeamViewer's own protocol";
    Telnet = "Telnet", RemoteAccess, "Terminals, RFC 854";
    VmwareAuth = "VMware", RemoteAccess, "Consoles of VMware's virtual machines";
    Vnc = "VNC", RemoteAccess, "Remote Framebuffer, RFC 6143";
    X11 = "X11", RemoteAccess, "X Window System";
    Xdmcp = "XDMCP", RemoteAccess, "X Display Manager Control Protocol";
    // Directories, and who may do what
    Cldap = "CLDAP", System, "LDAP in datagrams: how domain controllers are found";
    Diameter = "Diameter", Network, "Authentication, authorisation and accounting, RFC 6733";
    DnsCrypt = "DNSCrypt", Network, "Names asked for in secret";
    Kerberos = "Kerberos", System, "Who is it? RFC 4120";
    Ldap = "LDAP", System, "Lightweight Directory Access Protocol, RFC 4511";
    Radius = "RADIUS", Network, "Authentication and accounting of access, RFC 2865";
    Tacacs = "TACACS+", Network, "Who may manage a device? RFC 8907";
    // Files, disks and backups
    Afp = "AFP", FileTransfer, "Apple Filing Protocol";
    AfsRx = "AFS", FileTransfer, "Andrew File System's Rx";
    Bacula = "Bacula", FileTransfer, "Backups by Bacula and Bareos";
    Ceph = "Ceph", FileTransfer, "A distributed store";
    Cvs = "CVS", Development, "Concurrent Versions System";
    DceRpc = "DCE/RPC", System, "Calls of DCE and Windows";
    Dicom = "DICOM", Health, "Images of medicine";
    Git = "Git", Development, "Git's own protocol";
    Iscsi = "iSCSI", FileTransfer, "Disks over TCP, RFC 7143";
    Nbd = "NBD", FileTransfer, "Network Block Device";
    Ndmp = "NDMP", FileTransfer, "Network Data Management Protocol: backups";
    NetbiosDatagram = "NetBIOS-DGM", System, "NetBIOS datagrams, RFC 1002";
    NetbiosName = "NetBIOS-NS", System, "NetBIOS names, RFC 1002";
    NetbiosSession = "NetBIOS-SSN", System, "NetBIOS sessions, RFC 1002";
    Nfs = "NFS", FileTransfer, "Network File System, mount and locks";
    NineP = "9P", FileTransfer, "Plan 9's files";
    OncRpc = "ONC RPC", System, "Calls of Sun, RFC 5531";
    ProfinetCm = "PROFINET CM", Industrial, "PROFINET's context manager, over DCE/RPC";
    Rsync = "rsync", FileTransfer, "Copies of what has changed";
    Smb1 = "SMBv1", FileTransfer, "Files of Windows, of old";
    Smb2 = "SMBv2", FileTransfer, "Files of Windows, SMB 2 and 3";
    Svn = "SVN", Development, "Subversion's own protocol";
    Tftp = "TFTP", FileTransfer, "Trivial File Transfer Protocol, RFC 1350";
    Uftp = "UFTP", FileTransfer, "Files to many by multicast";
    Z3950 = "Z39.50", Education, "Catalogues of libraries";
    // Tunnels and private networks
    Esp = "ESP", Vpn, "Encapsulating Security Payload, by itself or in UDP";
    Geneve = "Geneve", Network, "Virtual networks, RFC 8926";
    GtpC = "GTP-C", Network, "GPRS Tunnelling Protocol: control, versions 1 and 2";
    GtpPrime = "GTP'", Network, "Charging records, TS 32.295";
    GtpU = "GTP-U", Network, "GPRS Tunnelling Protocol: user plane, its own messages";
    Ike = "IKE", Vpn, "Internet Key Exchange, versions 1 and 2";
    L2tp = "L2TP", Vpn, "Layer 2 Tunnelling Protocol, versions 2 and 3";
    LispData = "LISP data", Network, "Packets carried by LISP, RFC 9300";
    Nebula = "Nebula", Vpn, "An overlay network";
    OpenVpn = "OpenVPN", Vpn, "OpenVPN, with tls-auth and tls-crypt";
    Pfcp = "PFCP", Network, "Packet Forwarding Control Protocol, TS 29.244";
    Pptp = "PPTP", Vpn, "Point-to-Point Tunnelling Protocol, RFC 2637";
    Tailscale = "Tailscale", Vpn, "How peers of Tailscale find each other";
    Teredo = "Teredo", Vpn, "IPv6 through NATs, RFC 4380";
    Vxlan = "VXLAN", Network, "Virtual networks, RFC 7348";
    WireGuard = "WireGuard", Vpn, "WireGuard";
    // Discovery and printing
    Bjnp = "BJNP", System, "Canon's printers and scanners";
    DropboxLan = "Dropbox LAN sync", FileTransfer, "Dropbox within a network";
    Gvcp = "GVCP", Industrial, "Cameras of GigE Vision";
    HdHomeRun = "HDHomeRun", Video, "Tuners of SiliconDust";
    HpJetDirect = "JetDirect", System, "Printers that are sent to as they are";
    Lpd = "LPD", System, "Line Printer Daemon, RFC 1179";
    Mndp = "MNDP", Network, "MikroTik's discovery";
    NatPmp = "NAT-PMP", Network, "Ports of a NAT asked for, and PCP, RFC 6887";
    Sap = "SAP", Video, "Sessions announced, RFC 2974";
    Slp = "SLP", System, "Service Location Protocol, RFC 2608";
    SpotifyLan = "Spotify LAN", Music, "Spotify within a network";
    Ssdp = "SSDP", System, "Simple Service Discovery Protocol of UPnP";
    Syncthing = "Syncthing", FileTransfer, "How Syncthing finds its peers";
    TivoConnect = "TiVoConnect", Video, "TiVo's recorders";
    UbiquitiDiscovery = "Ubiquiti discovery", Network, "Ubiquiti's devices";
    WsDiscovery = "WS-Discovery", System, "Web Services Dynamic Discovery";
    // Carried by IP itself
    Ah = "AH", Vpn, "IP Authentication Header, RFC 4302";
    Dccp = "DCCP", Network, "Datagram Congestion Control Protocol, RFC 4340";
    Egp = "EGP", Network, "Exterior Gateway Protocol, RFC 904";
    Eigrp = "EIGRP", Network, "Cisco's routes, RFC 7868";
    EtherIp = "EtherIP", Network, "Ethernet in IP, RFC 3378";
    Gre = "GRE", Vpn, "Generic Routing Encapsulation, RFC 2784";
    Icmp = "ICMP", Network, "Internet Control Message Protocol, RFC 792";
    Icmpv6 = "ICMPv6", Network, "The same for IPv6, RFC 4443";
    Igmp = "IGMP", Network, "Who listens to a multicast group, RFC 9776";
    IpInIp = "IP-in-IP", Vpn, "IP within IP, RFC 2003, RFC 4213";
    IsIs = "IS-IS over IPv4", Network, "Routes of ISO 10589";
    MplsInIp = "MPLS in IP", Network, "Labels in IP, RFC 4023";
    Ospf = "OSPF", Network, "Routes within a network, RFC 2328, RFC 5340";
    Pgm = "PGM", Network, "Pragmatic General Multicast, RFC 3208";
    Pim = "PIM", Network, "Multicast routes, RFC 7761";
    Rsvp = "RSVP", Network, "Resource Reservation Protocol, RFC 2205";
    Sctp = "SCTP", Network, "Stream Control Transmission Protocol, RFC 9260";
    UdpLite = "UDP-Lite", Network, "UDP whose check covers a part, RFC 3828";
    Vrrp = "VRRP", Network, "Which router is it today, RFC 9568";
    // Plants, power grids, buildings and vehicles
    Ads = "ADS", Industrial, "Beckhoff's TwinCAT";
    Atg = "ATG", Industrial, "Gauges of fuel tanks, Veeder-Root";
    Bacnet = "BACnet", Industrial, "Building automation, ANSI/ASHRAE 135";
    C1222 = "ANSI C12.22", Industrial, "Meters";
    C37118 = "IEEE C37.118", Industrial, "Synchrophasors of power grids";
    CanOverUdp = "CAN over UDP", Industrial, "Frames of vehicles' buses, ISO 11898";
    CipIo = "CIP I/O", Industrial, "Common Industrial Protocol: cyclic data";
    CnpIp = "CNP/IP", Industrial, "Control networks over IP, EIA-852: LonTalk";
    Dlms = "DLMS", Industrial, "Meters, IEC 62056";
    Dnp3 = "DNP3", Industrial, "Distributed Network Protocol, IEEE 1815";
    DoIp = "DoIP", Industrial, "Diagnosis of vehicles, ISO 13400";
    Egd = "EGD", Industrial, "Ethernet Global Data";
    EtherNetIp = "EtherNet/IP", Industrial, "Common Industrial Protocol over TCP and UDP";
    EtherSBus = "Ether-S-Bus", Industrial, "Saia's controllers";
    Fins = "FINS", Industrial, "Omron's controllers";
    Fox = "Fox", Industrial, "Niagara's buildings";
    HartIp = "HART-IP", Industrial, "Field devices, HCF_SPEC-085";
    HiSlip = "HiSLIP", Industrial, "Instruments, IVI-6.1";
    Iec104 = "IEC 60870-5-104", Industrial, "Control of power grids";
    KnxNetIp = "KNXnet/IP", Industrial, "Homes and buildings, EN 13321-2";
    Mms = "MMS", Industrial, "Manufacturing Message Specification, IEC 61850";
    Modbus = "Modbus", Industrial, "Controllers, Modbus/TCP";
    OpcUa = "OPC UA", Industrial, "Open Platform Communications";
    S7Comm = "S7Comm", Industrial, "Siemens' controllers";
    S7CommPlus = "S7CommPlus", Industrial, "Siemens' newer controllers";
    Slmp = "SLMP", Industrial, "Mitsubishi's controllers";
    SomeIp = "SOME/IP", Industrial, "Services in vehicles, AUTOSAR";
    // Things
    ArtNet = "Art-Net", Things, "Lights of stages";
    Coap = "CoAP", Things, "Constrained Application Protocol, RFC 7252";
    Dhip = "DHIP", Things, "Dahua's cameras";
    Gt06 = "GT06", Things, "Trackers of vehicles";
    Lifx = "LIFX", Things, "Lamps";
    MerakiCloud = "Meraki Cloud", Network, "Cisco Meraki's devices and their cloud";
    MiIo = "miIO", Things, "Xiaomi's homes";
    Nmea = "NMEA 0183", Things, "Positions, ships and their instruments";
    Osc = "OSC", Things, "Open Sound Control";
    Sacn = "sACN", Things, "Lights of stages, ANSI E1.31";
    TpLinkShp = "TP-Link SHP", Things, "TP-Link's plugs and lamps";
    Tuya = "Tuya LP", Things, "Tuya's devices within a network";
    Weave = "Weave", Things, "Nest's devices";
    // Routes
    Babel = "Babel", Network, "Routes, RFC 8966";
    Bfd = "BFD", Network, "Bidirectional Forwarding Detection, RFC 5880";
    Bgp = "BGP", Network, "Border Gateway Protocol, RFC 4271";
    Bmp = "BMP", Network, "BGP monitored, RFC 7854";
    Ccp = "CPHA", Network, "Check Point's clusters";
    Dlep = "DLEP", Network, "Radios and their routers, RFC 8175";
    Glbp = "GLBP", Network, "Gateway Load Balancing Protocol";
    Hsrp = "HSRP", Network, "Hot Standby Router Protocol, RFC 2281";
    Ldp = "LDP", Network, "Label Distribution Protocol, RFC 5036";
    LispControl = "LISP", Network, "Locator/ID Separation Protocol: control, RFC 9301";
    Msdp = "MSDP", Network, "Multicast Source Discovery Protocol, RFC 3618";
    Olsr = "OLSR", Network, "Routes of meshes, RFC 3626";
    OpenFlow = "OpenFlow", Network, "Switches and their controllers";
    Pcep = "PCEP", Network, "Path Computation Element Protocol, RFC 5440";
    Rip = "RIP", Network, "Routing Information Protocol, RFC 2453 and 2080";
    // Exchange among peers, and their currencies
    Bitcoin = "Bitcoin", Finance, "Bitcoin and what is derived from it";
    BitTorrent = "BitTorrent", PeerToPeer, "BitTorrent's peers, BEP 3";
    BitTorrentDht = "BitTorrent DHT", PeerToPeer, "BitTorrent's hash table, BEP 5";
    BitTorrentLsd = "BitTorrent LSD", PeerToPeer, "BitTorrent within a network, BEP 14";
    BitTorrentTracker = "BitTorrent tracker", PeerToPeer, "BitTorrent's trackers over UDP, BEP 15";
    DirectConnect = "Direct Connect", PeerToPeer, "Hubs of DC++: NMDC and ADC";
    EDonkey = "eDonkey", PeerToPeer, "eDonkey and eMule";
    EDonkeyUdp = "eDonkey UDP", PeerToPeer, "Datagrams of eMule and Kademlia";
    Ethereum = "Ethereum RLPx", Finance, "Ethereum's peers";
    EthereumDiscovery = "Ethereum", Finance, "How Ethereum's peers are found";
    Gnutella = "Gnutella", PeerToPeer, "Gnutella";
    Libp2p = "libp2p", PeerToPeer, "IPFS and what is built like it";
    Mining = "Mining", Finance, "Stratum: what miners are told";
    Monero = "Monero", Finance, "Monero's peers";
    ResilioSync = "Resilio Sync", FileTransfer, "Folders kept alike without a server";
    Utp = "uTP", PeerToPeer, "BitTorrent's streams over UDP, BEP 29";
    // Messages and voices between people
    Agora = "Agora SD-RTN", Voice, "Agora's network for calls and streams";
    Bfcp = "BFCP", Voice, "Binary Floor Control Protocol, RFC 8855";
    Discord = "Discord", Voice, "Discord's voice";
    Irc = "IRC", Messaging, "Internet Relay Chat, RFC 2812";
    KakaoTalk = "KakaoTalk LOCO", Messaging, "KakaoTalk's messages";
    LineCall = "LINE call", Voice, "LINE's calls";
    MsnMessenger = "MSN", Messaging, "Microsoft's messenger of old";
    Msrp = "MSRP", Messaging, "Message Session Relay Protocol, RFC 4975";
    Mumble = "Mumble", Voice, "Mumble's voice servers";
    Oscar = "OSCAR", Messaging, "AIM and ICQ";
    Qq = "QQ", Messaging, "Tencent's messages, OICQ";
    TeamSpeak = "TeamSpeak", Voice, "Voices of players";
    Telegram = "Telegram", Messaging, "MTProto, and the reflectors of calls";
    Viber = "Viber", Voice, "Viber's calls, on its ports";
    WeChat = "WeChat", Messaging, "WeChat's mmtls";
    WhatsApp = "WhatsApp", Messaging, "WhatsApp's messages";
    Xmpp = "XMPP", Messaging, "Extensible Messaging and Presence Protocol, RFC 6120";
    YahooMessenger = "Yahoo Messenger", Messaging, "Yahoo's messenger of old";
    Zoom = "Zoom", Voice, "Members of a Zoom meeting, without its server";
    // Games and consoles
    Demonware = "Demonware", Games, "How Call of Duty finds its players";
    ENet = "ENet", Games, "What carries many games";
    GameSpy = "GameSpy", Games, "Questions to servers of games";
    Kcp = "KCP", Games, "Streams over UDP, for games";
    Minecraft = "Minecraft", Games, "Minecraft's servers (Java edition)";
    NetcodeIo = "netcode.io", Games, "Yojimbo's connections";
    Photon = "Photon", Games, "Exit Games' engine";
    PlayStation = "PlayStation", Games, "How PlayStations are found, woken, and played on from elsewhere";
    Quake = "Quake", Games, "Quake III and what is built like it";
    RakNet = "RakNet", Games, "What carries Minecraft (Bedrock) and others";
    Samp = "SA-MP", Games, "San Andreas Multiplayer";
    SourceEngine = "Source Engine", Games, "Questions to Valve's servers";
    Steam = "Steam", Games, "Steam's clients";
    SteamDatagramRelay = "Steam Datagram Relay", Games, "Valve's relays";
    Teeworlds = "Teeworlds", Games, "Teeworlds";
    WarcraftLan = "Warcraft III", Games, "Warcraft III within a network";
    WorldOfWarcraft = "World of Warcraft", Games, "World of Warcraft";
    XboxLive = "Xbox Live", Games, "Xboxes that play and talk with each other";
    XboxSmartGlass = "Xbox SmartGlass", Games, "How Xboxes are found and controlled";
    // Between servers; films and measurements
    Ajp = "AJP", Web, "Apache JServ Protocol";
    Alibaba = "AliCloud", Cloud, "Agents of Alibaba's cloud";
    Avast = "Avast", Security, "Avast's cloud";
    FastCgi = "FastCGI", Web, "Programs behind web servers";
    Fix = "FIX", Finance, "Financial Information eXchange";
    Hl7 = "HL7", Health, "Messages of hospitals";
    Kismet = "Kismet", Network, "Wireless networks watched";
    Mpd = "MPD", Music, "Music Player Daemon";
    Ookla = "Ookla", Network, "Speedtest";
    Scgi = "SCGI", Web, "Simple Common Gateway Interface";
    SpotifyAp = "Spotify", Music, "Spotify's clients and their access points";
    Srt = "SRT", Video, "Secure Reliable Transport";
    Uwsgi = "uWSGI", Web, "Programs behind web servers";
    // Signalling of mobile networks
    E1ap = "E1AP", Network, "Base station: control plane to user plane, TS 37.483";
    F1ap = "F1AP", Network, "Base station: central to distributed unit, TS 38.473";
    M3ua = "M3UA", Network, "SS7's messages over SCTP, RFC 4666";
    Ngap = "NGAP", Network, "Base station to AMF, TS 38.413";
    S1ap = "S1AP", Network, "Base station to MME, TS 36.413";
    Smpp = "SMPP", Messaging, "Short messages between centres, SMPP 3.4";
    X2ap = "X2AP", Network, "Between base stations of LTE, TS 36.423";
    XnAp = "XnAP", Network, "Between base stations of NR, TS 38.423";
    // By behaviour: what a flow does that nobody knows
    Bulk = "Bulk transfer", FileTransfer, "One side sends full packets, the other one next to nothing";
    Call = "Call", Voice, "Small packets of nearly the same size every 10 to 60 ms, both ways";
    FullyEncrypted = "Fully encrypted", Other, "Both sides begin with octets like chance: Shadowsocks, obfs4, VMess, or peers who hide";
    Game = "Game", Games, "Small packets of many sizes by two clocks, both ways";
    Interactive = "Interactive", Other, "Little each way, turn by turn, at uneven times: a person, or a machine that is asked now and then";
    LiveVideo = "Live video", Video, "Bursts of full packets, 14 to 60 a second, and little against them";
    Tunnel = "VPN tunnel", Vpn, "Full and small ciphered packets both ways, none smaller than an IP packet in a tunnel";
}

impl Protocol {
    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}
