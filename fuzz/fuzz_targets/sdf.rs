//! Texts inside N4 messages: flow descriptions (IPFilterRule), Network Instance names, Framed-Route texts.
#![no_main]

use fuzz::requests;
use libfuzzer_sys::fuzz_target;
use pfcp::ie::{FTeid, Interface, SdfFilter, UeIpAddress};
use session::network_instance::Name;
use session::sdf::{Flow, SdfLimits};
use session::store::{Counts, PeerId, Store};
use std::cell::RefCell;

/// Protocols as the registry has them.
const NAMES: [(&str, u8); 8] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ipv6-icmp", 58),
    ("sctp", 132),
];

thread_local! {
    static STORE: RefCell<(Store, PeerId)> = RefCell::new({
        let mut store = Store::new(requests::config()).expect("the configuration is right");
        let peer = store.attach();
        (store, peer)
    });
}

fuzz_target!(|data: &[u8]| {
    let limits = SdfLimits::default();
    if let Ok(flow) = Flow::parse(data, limits) {
        assert!(data.len() <= limits.text);
        for ports in [&flow.remote_ports, &flow.local_ports] {
            assert!(ports.len() <= limits.ports && ports.iter().all(|(first, last)| first <= last));
        }
        // Case and the amount of space don't matter, nor does a C string's end.
        let text = String::from_utf8_lossy(data);
        let words: Vec<_> = text.trim_end_matches('\0').split_ascii_whitespace().collect();
        assert_eq!(Flow::parse(words.join(" ").to_ascii_lowercase().as_bytes(), limits).as_ref(), Ok(&flow));
        // Nor whether the protocol has its name or its number.
        if let Some(&protocol) = words.get(2) {
            let number = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(protocol));
            assert!(number.is_none_or(|(_, number)| flow.protocol == Some(*number)), "{protocol}");
            let mut strict = words.clone();
            let number = flow.protocol.map_or("ip".to_owned(), |number| number.to_string());
            strict[2] = &number;
            assert_eq!(Flow::parse(strict.join(" ").as_bytes(), limits), Ok(flow));
        }
    }
    let name = Name::new(data);
    assert!(name.is(data));
    assert_eq!(name.is_default(), name.is(b""));

    // And through a whole request: as the filter, the route and the name of its PDRs.
    STORE.with_borrow_mut(|(store, peer)| {
        for part in 0..4 {
            let mut up = requests::empty_pdi(Interface::ACCESS);
            up.local_fteid = Some(FTeid::Choose { ipv4: true, ipv6: false, id: None });
            up.ue_ips = vec![UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() }];
            match part {
                0 => {
                    up.sdf_filters = vec![SdfFilter { flow_description: Some(data), ..SdfFilter::default() }]
                }
                1 => up.framed_routes = vec![data],
                2 => up.framed_ipv6_routes = vec![data],
                _ => up.network_instance = Some(data),
            }
            if let Ok(established) = store.establish(&requests::with_pdi(up), *peer) {
                let routes = &established.rules.framed_ipv4;
                assert!(routes.iter().all(|net| *net == net.trunc() && net.prefix_len() > 0));
                store.delete(established.rules.seid).expect("it is there");
            }
            assert_eq!(store.counts(), Counts::default());
        }
    });
});
