//! GTP-U: header, extension chain, PDU session container, signalling messages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::gtpu::{ExtensionType, HEADER_LEN, LONG_HEADER_LEN, MAX_EXTENSIONS};
use packet::gtpu_message::{self, Element, ErrorIndication};
use packet::*;

const KNOWN: [ExtensionType; 2] = [ExtensionType::PDU_SESSION_CONTAINER, ExtensionType::UDP_PORT];

fuzz_target!(|data: &[u8]| {
    if let Ok(v) = GtpuView::parse(data) {
        let length = usize::from(u16::from_be_bytes([data[2], data[3]]));
        assert_eq!(v.header_len() + v.payload().len(), HEADER_LEN + length);
        let _ = (v.message_type(), v.teid(), v.sequence(), v.n_pdu_number());
        assert!(v.extensions().count() <= MAX_EXTENSIONS);
        let chain: usize = v.extensions().map(|e| e.content.len() + 2).sum();
        assert!(chain == 0 || chain + LONG_HEADER_LEN == v.header_len());
        let stranger = v.not_comprehended(&KNOWN);
        assert!(stranger.is_none_or(|kind| v.extensions().any(|e| e.kind == kind) && !KNOWN.contains(&kind)));
        match (v.qfi(), v.pdu_session()) {
            (Ok(qfi), Ok(container)) => assert_eq!(qfi, container.map(|c| c.qfi())),
            // The whole container may be bad where its QFI can be read, not the other way round.
            (Err(_), Ok(container)) => assert!(container.is_none(), "{container:?} without QFI"),
            (_, Err(_)) => {}
        }
        elements(v.payload());
        let _ = IpPacket::parse(v.payload());
    }
    elements(data);
    container(data);
});

fn elements(data: &[u8]) {
    assert!(gtpu_message::elements(data).count() <= data.len());
    if let Ok(error) = ErrorIndication::parse(data) {
        assert!(gtpu_message::elements(data).flatten().any(|e| e == Element::Teid(error.teid)));
        // What we would say ourselves is read alike.
        let mut out = Vec::new();
        gtpu_message::emit_error_indication(&mut out, 7, &error, Some(2152));
        let view = GtpuView::parse(&out).expect("an Error Indication is a message");
        assert_eq!(ErrorIndication::parse(view.payload()), Ok(error));
        assert_eq!(view.not_comprehended(&KNOWN), None);
    }
}

/// A container that can be read is written and read again.
fn container(data: &[u8]) {
    let Ok(session) = PduSession::parse(data) else { return };
    assert_eq!(PduSession::qfi_in(data), Ok(session.qfi()));
    let packet = PacketBuilder::new().gtpu(Teid(9)).pdu_session(&session).build(b"x");
    let view = GtpuView::parse(&packet).expect("a G-PDU with container");
    assert_eq!(view.pdu_session(), Ok(Some(session)));
    assert_eq!(view.payload(), b"x");
}
