//! What others read in the same octets: where they accept a message, ours says the same of it.
#![allow(clippy::unwrap_used)]

use dpi::protocols::{dns, http};
use proptest::prelude::*;
use simple_dns::rdata::{A, AAAA, CNAME, RData};
use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, ResourceRecord, TYPE};
use std::fmt::Write;
use std::net::IpAddr;

fn label() -> impl Strategy<Value = String> {
    "[a-z0-9-]{1,20}"
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..5).prop_map(|labels| labels.join("."))
}

#[derive(Clone, Debug)]
enum Said {
    V4(u32),
    V6(u128),
    Alias(String),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        any::<u32>().prop_map(Said::V4),
        any::<u128>().prop_map(Said::V6),
        name().prop_map(Said::Alias)
    ]
}

proptest! {
    /// Written by another, with compression and without.
    #[test]
    fn dns_answers_are_read_as_they_were_written(
        asked in name(),
        records in prop::collection::vec((name(), said(), any::<u32>()), 0..8),
        compresses in any::<bool>(),
    ) {
        let mut packet = Packet::new_reply(7);
        let of = |text: &'_ str| Name::new(text).unwrap().into_owned();
        packet.questions.push(Question::new(of(&asked), QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN), false));
        for (owner, said, ttl) in &records {
            let data = match said {
                Said::V4(address) => RData::A(A { address: *address }),
                Said::V6(address) => RData::AAAA(AAAA { address: *address }),
                Said::Alias(name) => RData::CNAME(CNAME(of(name))),
            };
            packet.answers.push(ResourceRecord::new(of(owner), CLASS::IN, *ttl, data));
        }
        let bytes =
            if compresses { packet.build_bytes_vec_compressed() } else { packet.build_bytes_vec() }.unwrap();

        let message = dns::Message::parse(&bytes).unwrap();
        let mut room = [0; 255];
        let question = message.questions().next().unwrap();
        prop_assert_eq!(question.name.write(&mut room), Some(asked.as_bytes()));
        prop_assert_eq!(message.answers().count(), records.len());
        for (mine, (owner, said, ttl)) in message.answers().zip(&records) {
            prop_assert_eq!(mine.name.write(&mut room), Some(owner.as_bytes()));
            prop_assert_eq!(mine.ttl, *ttl);
            match said {
                Said::V4(address) => prop_assert_eq!(mine.address(), Some(IpAddr::V4((*address).into()))),
                Said::V6(address) => prop_assert_eq!(mine.address(), Some(IpAddr::V6((*address).into()))),
                Said::Alias(name) => prop_assert_eq!(mine.alias().unwrap().write(&mut room), Some(name.as_bytes())),
            }
        }
    }

    /// Read by httparse, where that accepts it.
    #[test]
    fn http_requests_are_read_alike(
        method in "(GET|POST|OPTIONS|PUT)",
        target in "/[!-~]{0,30}",
        fields in prop::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,20}"), 0..8),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut text = format!("{method} {target} HTTP/1.1\r\n");
        for (name, value) in &fields {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let mut bytes = (text + "\r\nbody").into_bytes();
        if let Some((at, with)) = change {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        let mut room = [httparse::EMPTY_HEADER; 16];
        let mut theirs = httparse::Request::new(&mut room);
        if let Ok(httparse::Status::Complete(end)) = theirs.parse(&bytes)
            && theirs.method.is_some_and(|it| it.len() < 15)
            // Empty lines before a request are read by them.
            && bytes[0].is_ascii_graphic()
        {
            let mine = http::Request::parse(&bytes).unwrap();
            prop_assert_eq!(Some(mine.method), theirs.method.map(str::as_bytes));
            prop_assert_eq!(Some(mine.target), theirs.path.map(str::as_bytes));
            prop_assert_eq!(mine.fields.iter().count(), theirs.headers.len());
            for (mine, theirs) in mine.fields.iter().zip(&*theirs.headers) {
                prop_assert_eq!((mine.name, mine.value), (theirs.name.as_bytes(), theirs.value.trim_ascii()));
            }
            prop_assert_eq!(mine.fields.body(), Some(&bytes[end..]));
        }
    }
}
