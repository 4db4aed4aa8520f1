//! Capture files: pcap and pcapng, of either byte order. Any bytes end in packets or in an error that stays.
#![no_main]

use io::pcap::{CaptureReader, CaptureWriter, Direction};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

fuzz_target!(|data: &[u8]| {
    let whole = packets(data);
    // However the bytes come in, they say the same.
    assert_eq!(whole, packets(Slowly { rest: data, chunk: 7 }));

    // What was read is written and read again.
    let mut writer = CaptureWriter::new(Vec::new()).expect("memory");
    let interface = writer.interface("fuzz").expect("memory");
    for (time, packet) in &whole.0 {
        writer.write(interface, *time, Some(Direction::In), packet, Some("again")).expect("memory");
    }
    let file = writer.into_inner();
    assert_eq!(packets(&file[..]), (whole.0, None));
});

/// The packets with their times, and the error that ended them.
fn packets(input: impl Read) -> (Vec<(u64, Vec<u8>)>, Option<String>) {
    let mut reader = CaptureReader::new(input);
    let mut read = Vec::new();
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => read.push((packet.nanos, packet.data.to_vec())),
            Ok(None) => return (read, None),
            Err(error) => {
                assert_eq!(reader.next_packet().err(), Some(error.clone()), "an error is final");
                return (read, Some(error.to_string()));
            }
        }
    }
}

/// A source that gives few bytes at a time.
struct Slowly<'a> {
    rest: &'a [u8],
    chunk: usize,
}

impl Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let take = self.chunk.min(into.len());
        (&mut self.rest).take(take as u64).read(into)
    }
}
