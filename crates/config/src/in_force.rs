//! What is in force, as a file that can be read again.

use super::sections::NodeSection;
use super::typed::{Config, Placement};

impl Config {
    /// As TOML: every key with its value, defaults included, but for those that have no value and those of a flow log that isn't written. Read
    /// again, it is the same configuration.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut file = (*self.written.0).clone();
        file.node = NodeSection { id: Some(self.node_id.clone()), name: Some(self.name.clone()) };
        file.n4.peers = Some(self.n4.peers.clone());
        file.n4.last_reports = self.n4.last_reports;
        file.ctl.socket.clone_from(&self.socket);
        // A limit that was lowered can be below what it was that was taken of it at the start.
        (file.n3, file.limits) = (self.n3, self.limits.consistent());
        file.log.clone_from(&self.log);
        for (section, port) in file.port.iter_mut().zip(&self.ports) {
            section.queues = Some(port.queues);
        }
        if let Placement::Count(count) = self.workers {
            file.workers.count = Some(count);
        }
        let mut table = toml::Table::try_from(&file)?;
        // How to write a log that isn't written: the loader refuses to be told.
        if file.flow_log.file.is_none() {
            table.remove("flow-log");
        }
        // Nor of an inspection that isn't made.
        if !file.inspection.enabled
            && let Some(inspection) = table.get_mut("inspection").and_then(toml::Value::as_table_mut)
        {
            inspection.retain(|key, _| key == "enabled");
        }
        toml::to_string(&table)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{EXAMPLE, parse};

    #[track_caller]
    fn comes_back(text: &str, set: &[&str]) -> String {
        let set: Vec<_> = set.iter().map(ToString::to_string).collect();
        let config = parse("a", text, &[], &set).unwrap_or_else(|report| panic!("{report}"));
        let written = config.to_toml().unwrap();
        let mut again = parse("b", &written, &[], &[]).unwrap_or_else(|report| panic!("{report}\n{written}"));
        // What was left out is written out now; nothing else differs.
        assert_eq!(again.to_toml().unwrap(), written);
        again.written.clone_from(&config.written);
        assert_eq!(again, config, "{written}");
        written
    }

    const LEAST: &str = "
[[port]]
name = 'a'
driver = 'null'
[[interface]]
name = 'n3'
port = 'a'
roles = ['n3', 'n6']
addresses = ['192.0.2.1/24']
";

    #[test]
    fn what_is_in_force_can_be_read_again() {
        comes_back(EXAMPLE, &[]);
        let least = comes_back(LEAST, &["limits.sessions=7", "n4.heartbeat-interval=0s"]);
        for line in [
            "sessions = 7",
            "sessions-per-peer = 7",
            "heartbeat-interval = \"0s\"",
            "n1 = 3",
            "mtu = 1500",
            "count = 1",
            "queues = 1",
        ] {
            assert!(least.lines().any(|found| found == line), "{line}\n{least}");
        }
    }

    #[test]
    fn so_can_the_greatest_values_and_odd_names() {
        let odd = "[node]\nname = \"a \\\"quoted\\\" name\\n\\u00fc\"\n";
        let set = [
            "workers.cores=[0,1]",
            "workers.dispatchers=1",
            "flow-log.file=/tmp/flows",
            "flow-log.max-bytes=1099511627776",
            "flow-log.watermark-bytes=17592186044416",
            "limits.reply-octets=2147483647",
            "offload.margin-bytes=1099511627776",
        ];
        comes_back(&format!("{odd}{LEAST}"), &set);
    }
}
