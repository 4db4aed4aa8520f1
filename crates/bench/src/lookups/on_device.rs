//! The same keys in a copy of the table on a GPU ([`crate::devices`]): bursts as a core has them, and batches that fill it.

use super::{BURST, LookupError};
use crate::devices::{Gpus, Job, Sending, Subject, TABLE, best_on_cpu, launched, rung};
use crate::progress::Progress;
use crate::report::{Param, Report};
use accel::copies::layout::NONE;
use accel::task::{Batch, Lookup, Misfit, Task};
use tables::image::Image;

const SENDINGS: [Sending; 4] = [launched(256, 8), launched(1 << 16, 4), rung(BURST, 16), rung(256, 16)];

/// Keys, and what has to be found.
pub(super) type Keys<K> = (Vec<K>, Vec<Option<u32>>);

/// Measures look-ups in a copy of a table: `push` adds a key to a batch, `keys` makes so many, `params` are those of the same look-ups on a core.
pub(super) fn measure<K>(
    gpus: &mut Gpus<'_>,
    image: &dyn Image,
    push: fn(&mut Batch, &K) -> Result<(), Misfit>,
    keys: &mut dyn FnMut(usize) -> Keys<K>,
    params: &[(&'static str, Param)],
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LookupError> {
    let mut params: Vec<_> = params.iter().filter(|(key, _)| *key != "device").cloned().collect();
    params.extend([("engine", "millrace".into()), ("io_cycles", 0.into())]);
    let task = Task::Lookup(Lookup { table: TABLE, kind: image.layout().kind });
    let mut make = |items| {
        let (keys, found) = keys(items);
        let mut batch = Batch::new(0, task);
        keys.iter().try_for_each(|key| push(&mut batch, key))?;
        let right = found.iter().flat_map(|found| found.unwrap_or(NONE as u32).to_le_bytes()).collect();
        Ok((Job::new(batch, right), keys.len() as f64))
    };
    let subject = Subject {
        rate: "lookups_per_second",
        unit: "1/s",
        cpu: best_on_cpu(report, "lookups_per_second", &params),
        params,
        items: "burst",
        sendings: &SENDINGS,
        image: Some(image),
        make: &mut make,
    };
    gpus.measure(report, subject, progress)?;
    Ok(())
}
