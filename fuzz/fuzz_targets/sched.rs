//! What schedulers read from files: traces of packets, and tables of what q-learning has learned. Never a panic; what is read is written, and read again, as it was.
#![no_main]

use accel::sched::packet::PacketTable;
use accel::sched::q_learning::Table;
use accel::sched::trace::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Table::read(text) {
        Ok(table) => assert_eq!(Table::read(&table.text()), Ok(table)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match Trace::read(text) {
        Ok(trace) => {
            assert_eq!(Trace::read(&trace.text()).as_ref(), Ok(&trace));
            let _ = trace.check(PacketTable::default().kinds().len());
            let _ = (trace.load(), trace.seconds());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
