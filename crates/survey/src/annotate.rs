//! A capture with verdicts beside its packets, as comments that Wireshark shows.

use crate::explain::sentence;
use dpi::{Event, Knowledge};
use io::pcap::{CaptureWriter, CapturedPacket};
use std::collections::HashMap;
use std::io::{Result, Write};

/// Writes frames down, and what was found out with them.
#[derive(Debug)]
pub struct Annotated<W: Write> {
    writer: CaptureWriter<W>,
    /// The writer's interface for each of the capture's: number and link.
    interfaces: HashMap<(u32, u16), u32>,
}

impl<W: Write> Annotated<W> {
    /// Into this output.
    pub fn new(output: W) -> Result<Self> {
        Ok(Self { writer: CaptureWriter::new(output)?, interfaces: HashMap::new() })
    }

    /// One more frame, with the results that came of it.
    pub fn write(
        &mut self,
        frame: &CapturedPacket<'_>,
        events: &[Event],
        knowledge: &Knowledge,
    ) -> Result<()> {
        let key = (frame.interface, frame.link);
        let interface = if let Some(interface) = self.interfaces.get(&key) {
            *interface
        } else {
            let name = format!("interface {}", frame.interface);
            let interface = self.writer.any_interface(&name, frame.link)?;
            self.interfaces.insert(key, interface);
            interface
        };
        let verdicts: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Classified { verdict, .. } => Some(sentence(verdict, knowledge)),
                Event::Decoded { decoded, .. } => Some(decoded.to_string()),
                _ => None,
            })
            .collect();
        let comment = (!verdicts.is_empty()).then(|| verdicts.join("\n"));
        self.writer.write_captured(interface, frame.nanos, frame.data, frame.length, comment.as_deref())
    }

    /// Hands on what was written.
    pub fn finish(mut self) -> Result<()> {
        self.writer.flush()
    }
}
