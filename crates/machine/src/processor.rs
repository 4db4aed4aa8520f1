//! The processor and its instructions.

use crate::files::{FileError, Files};
use crate::{clean, field, note};
use serde::Serialize;
use std::collections::BTreeSet;

/// What `/proc/cpuinfo` says of the first processor; Linux runs on machines whose processors are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Its name; empty if nothing says it.
    pub model: String,
    /// Instruction sets and properties, by the kernel's names: `avx2`, `constant_tsc`; on 64-bit ARM `asimd`.
    pub features: BTreeSet<String>,
}

impl Processor {
    /// Reads it below a root.
    pub fn read(files: Files<'_>, problems: &mut Vec<FileError>) -> Self {
        let table = note(problems, files.table("proc/cpuinfo")).unwrap_or_default();
        let features = field(&table, "flags").or_else(|| field(&table, "Features")).unwrap_or_default();
        let model = field(&table, "model name").or_else(|| field(&table, "CPU implementer"));
        let sound = |word: &&str| word.len() <= 32 && !word.contains(char::is_control);
        Self {
            model: clean(model.unwrap_or_default()),
            features: features.split_whitespace().filter(sound).take(1024).map(str::to_owned).collect(),
        }
    }

    /// Whether it has all of these.
    pub fn has(&self, features: &[&str]) -> bool {
        features.iter().all(|feature| self.features.contains(*feature))
    }

    /// Whether a hypervisor says that this is a virtual machine.
    pub fn is_virtual(&self) -> bool {
        self.has(&["hypervisor"])
    }
}
