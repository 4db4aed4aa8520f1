//! Writes a mix of applications' flows as a capture: `cargo run --release -p loadgen --example applications -- ordinary FILE.pcapng [PACKETS [OPEN]]`.
//!
//! With 800,000 packets and 40,000 flows at a time, they are those of `millrace bench dpi`.

use io::pcap::CaptureWriter;
use loadgen::applications::{Length, Mix, Traffic};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("MIX FILE [PACKETS [OPEN]]".into());
    };
    let (packets, open) = (arguments.next(), arguments.next());
    let packets = packets.map_or(Ok(800_000), |it| it.parse())?;
    let open = open.map_or(Ok(40_000), |it| it.parse())?;
    let mix = Mix::ALL.into_iter().find(|it| it.name == name).ok_or("no such mix")?;
    let traffic = Traffic::new(mix, Length::Whole, packets, open, 11);
    let mut writer = CaptureWriter::new(BufWriter::new(File::create(file)?))?;
    let interface = writer.interface(mix.name)?;
    for (number, frame) in (0..).zip(traffic.frames()) {
        // Two million a second.
        writer.write(interface, number * 500, None, frame, None)?;
    }
    writer.flush()?;
    Ok(())
}
