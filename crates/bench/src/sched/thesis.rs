//! What the thesis on schedulers for CPU and GPU workers printed, cell by cell: data, and nothing else.
//!
//! Its tables 5.1 to 5.4 call the latency "ms", but print seconds (0.06829 beside the text's "0.068 seconds"). The copy at hand mixed up cells of tables 4.2, 4.5 and 4.6; where a
//! cell's place isn't certain, it is the one that the other tables and the text agree with. Shares and orders that only the text of a figure states stand under the figure's number.

use crate::published::Document;
use accel::sched::Class;
use accel::sched::packet::{Chain, Step};
use accel::sched::traffic::Test;

/// The thesis.
pub const THESIS: Document = Document {
    author: "Markus Johansson and Oscar Pap",
    title: "Implementing and Comparing Static and Machine-Learning Scheduling Approaches using DPDK on an Integrated CPU/GPU",
    kind: "master thesis LIU-IDA/LITH-EX-A--19/092--SE, Linköping University",
    year: 2019,
    hardware: "NVIDIA Jetson Xavier, an integrated GPU of 512 cores beside ARM cores",
};

/// What its values are called in pictures.
pub const READ: &str = "Johansson and Pap 2019";

/// A scheduler in a configuration: a row of its tables.
pub type Row = (&'static str, Chain);

/// Rows of tables 5.1 to 5.8, in their order.
pub const ROWS: [Row; 6] = [
    ("round-robin", Chain::Once),
    ("round-robin", Chain::EachStep),
    ("static", Chain::Once),
    ("static", Chain::EachStep),
    ("q-learning", Chain::Once),
    ("q-learning", Chain::EachStep),
];

/// What a row is called there.
pub fn row_name((scheduler, chain): Row) -> &'static str {
    match (scheduler, chain) {
        ("round-robin", Chain::Once) => "C1 Round-robin",
        ("round-robin", Chain::EachStep) => "C2 Round-robin",
        ("static", Chain::Once) => "C1 Static",
        ("static", Chain::EachStep) => "C2 Static",
        ("q-learning", Chain::Once) => "C1 ML",
        ("q-learning", Chain::EachStep) => "C2 ML",
        (_, Chain::Once) => "C1 adaptive",
        (_, Chain::EachStep) => "C2 adaptive",
    }
}

/// Tables 5.1 to 5.4: by test, and row by row throughput in Gbit/s, latency in seconds, percent of deadlines missed, overhead in seconds.
pub const SUMMARY: [(&str, Test, [[f64; 4]; 6]); 4] = [
    (
        "5.1",
        Test::Low,
        [
            [0.01890, 0.30307, 100.0, 0.19863],
            [0.01887, 0.48441, 100.0, 0.47554],
            [0.01895, 0.06829, 20.13, 0.05729],
            [0.01895, 0.06221, 30.74, 0.05737],
            [0.01895, 0.06913, 21.44, 0.06818],
            [0.01895, 0.08624, 55.75, 0.07517],
        ],
    ),
    (
        "5.2",
        Test::Medium,
        [
            [0.05048, 0.19345, 100.0, 0.09097],
            [0.05050, 0.22891, 100.0, 0.14115],
            [0.05056, 0.03764, 0.0, 0.02947],
            [0.05056, 0.03818, 0.0, 0.03659],
            [0.05056, 0.03510, 0.0, 0.03225],
            [0.05056, 0.04314, 0.0, 0.04009],
        ],
    ),
    (
        "5.3",
        Test::Stress,
        [
            [0.09420, 0.10650, 98.76, 0.03357],
            [0.09122, 0.13141, 100.0, 0.08165],
            [0.09817, 0.04324, 0.0, 0.02141],
            [0.09982, 0.02261, 0.0, 0.02094],
            [0.08785, 0.02227, 0.0, 0.02091],
            [0.08501, 0.02677, 0.0, 0.02627],
        ],
    ),
    (
        "5.4",
        Test::Standard,
        [
            [0.04564, 0.19705, 100.0, 0.12354],
            [0.04540, 0.24718, 100.0, 0.16374],
            [0.04527, 0.04278, 0.07, 0.03008],
            [0.04552, 0.03920, 0.11, 0.03688],
            [0.04556, 0.03667, 0.0, 0.03411],
            [0.04520, 0.04461, 0.0, 0.04230],
        ],
    ),
];

/// Numbers of two tables, a test, and a row of figures for each of [`ROWS`].
pub type Power = ([&'static str; 2], Test, [[f64; 5]; 6]);

/// Tables 5.5 and 5.7 with 5.6 and 5.8: by test, and row by row milliwatts of GPU, CPU, SOC, DDR RAM, and on average of all.
pub const POWER: [Power; 2] = [
    (
        ["5.5", "5.6"],
        Test::Low,
        [
            [918.0, 7366.0, 2757.0, 305.0, 11344.0],
            [918.0, 7209.0, 2758.0, 304.0, 11190.0],
            [1064.0, 6752.0, 2606.0, 153.0, 10575.0],
            [1072.0, 6967.0, 2647.0, 153.0, 10838.0],
            [1072.0, 6648.0, 2606.0, 153.0, 10479.0],
            [1072.0, 6925.0, 2609.0, 153.0, 10759.0],
        ],
    ),
    (
        ["5.7", "5.8"],
        Test::Standard,
        [
            [1584.0, 7329.0, 2808.0, 317.0, 12038.0],
            [1592.0, 7365.0, 2818.0, 323.0, 12098.0],
            [1741.0, 7194.0, 2843.0, 263.0, 12040.0],
            [1773.0, 7184.0, 2804.0, 251.0, 12012.0],
            [1782.0, 6916.0, 2818.0, 231.0, 11747.0],
            [1761.0, 6914.0, 2790.0, 232.0, 11696.0],
        ],
    ),
];

/// What the texts of figures 5.5, 5.12, 5.19 and 5.26 say: percent of packets that the GPU decodes, and ciphers.
pub const SHARES: [(&str, Test, Row, [Option<f64>; 2]); 12] = [
    ("Figure 5.5", Test::Low, ROWS[0], [Some(66.0), None]),
    ("Figure 5.5", Test::Low, ROWS[1], [Some(66.0), None]),
    ("Figure 5.12", Test::Medium, ROWS[0], [Some(87.0), None]),
    ("Figure 5.12", Test::Medium, ROWS[1], [Some(87.0), None]),
    ("Figure 5.12", Test::Medium, ROWS[2], [Some(94.0), None]),
    ("Figure 5.12", Test::Medium, ROWS[3], [Some(100.0), Some(74.0)]),
    ("Figure 5.12", Test::Medium, ROWS[4], [Some(100.0), None]),
    ("Figure 5.12", Test::Medium, ROWS[5], [Some(100.0), Some(100.0)]),
    ("Figure 5.19", Test::Stress, ROWS[3], [Some(100.0), Some(25.0)]),
    ("Figure 5.26", Test::Standard, ROWS[2], [Some(96.0), None]),
    ("Figure 5.26", Test::Standard, ROWS[3], [Some(100.0), Some(70.0)]),
    ("Figure 5.26", Test::Standard, ROWS[4], [Some(100.0), None]),
];

/// What the texts of figures 5.13, 5.20 and 5.27 say: percent of packets in order, row by row.
pub const ORDER: [(&str, Test, [f64; 6]); 3] = [
    ("Figure 5.13", Test::Medium, [8.5, 6.5, 100.0, 100.0, 100.0, 100.0]),
    ("Figure 5.20", Test::Stress, [17.0, 11.0, 100.0, 100.0, 100.0, 100.0]),
    ("Figure 5.27", Test::Standard, [50.0, 14.0, 100.0, 100.0, 100.0, 100.0]),
];

/// What tables 4.2 to 4.7 have rows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Packets of so many octets.
    Octets(u32),
    /// The mix.
    Imix,
}

impl Size {
    /// Sizes and shares.
    pub fn sizes(self) -> Vec<(u32, u32)> {
        match self {
            Self::Octets(octets) => vec![(octets, 1)],
            Self::Imix => vec![(243, 2), (486, 1), (1458, 2)],
        }
    }
}

/// A row of these tables.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Tables of latency and of throughput.
    pub tables: [&'static str; 2],
    /// What the row is called.
    pub row: &'static str,
    /// The driver's step; none: both, in C1.
    pub step: Option<Step>,
    /// Who.
    pub class: Class,
    /// Packets.
    pub size: Size,
    /// Milliseconds on average.
    pub latency_ms: f64,
    /// Mbit/s on average.
    pub mbps: f64,
}

const fn driver(
    tables: [&'static str; 2],
    row: &'static str,
    (step, class): (Option<Step>, Class),
    size: Size,
    [latency_ms, mbps]: [f64; 2],
) -> Driver {
    Driver { tables, row, step, class, size, latency_ms, mbps }
}

const DECODE_CPU: (Option<Step>, Class) = (Some(Step::Decode), Class::Cpu);
const DECODE_GPU: (Option<Step>, Class) = (Some(Step::Decode), Class::Accelerator);
const CIPHER_CPU: (Option<Step>, Class) = (Some(Step::Cipher), Class::Cpu);
const CIPHER_GPU: (Option<Step>, Class) = (Some(Step::Cipher), Class::Accelerator);
const BOTH_CPU: (Option<Step>, Class) = (None, Class::Cpu);
const BOTH_GPU: (Option<Step>, Class) = (None, Class::Accelerator);
const BASEBAND: [&str; 2] = ["4.2", "4.3"];
const CRYPTO: [&str; 2] = ["4.4", "4.5"];
const PLATFORM: [&str; 2] = ["4.6", "4.7"];

/// Tables 4.2 to 4.7.
pub const DRIVERS: [Driver; 22] = [
    driver(BASEBAND, "CPU 243", DECODE_CPU, Size::Octets(243), [105.6, 4.7]),
    driver(BASEBAND, "CPU 486", DECODE_CPU, Size::Octets(486), [211.0, 4.7]),
    driver(BASEBAND, "CPU 1458", DECODE_CPU, Size::Octets(1458), [630.0, 4.7]),
    driver(BASEBAND, "CPU IMIX", DECODE_CPU, Size::Imix, [337.1, 4.7]),
    driver(BASEBAND, "GPU 243", DECODE_GPU, Size::Octets(243), [9.4, 53.0]),
    driver(BASEBAND, "GPU 486", DECODE_GPU, Size::Octets(486), [12.5, 79.6]),
    driver(BASEBAND, "GPU 1458", DECODE_GPU, Size::Octets(1458), [17.8, 168.6]),
    driver(BASEBAND, "GPU IMIX", DECODE_GPU, Size::Imix, [12.3, 130.0]),
    driver(CRYPTO, "CPU 243", CIPHER_CPU, Size::Octets(243), [1.73, 303.7]),
    driver(CRYPTO, "CPU 486", CIPHER_CPU, Size::Octets(486), [3.3, 306.5]),
    driver(CRYPTO, "CPU 1458", CIPHER_CPU, Size::Octets(1458), [9.8, 308.3]),
    driver(CRYPTO, "CPU IMIX", CIPHER_CPU, Size::Imix, [5.26, 308.9]),
    driver(CRYPTO, "GPU 243", CIPHER_GPU, Size::Octets(243), [1.77, 366.8]),
    driver(CRYPTO, "GPU 486", CIPHER_GPU, Size::Octets(486), [1.99, 633.8]),
    driver(CRYPTO, "GPU 1458", CIPHER_GPU, Size::Octets(1458), [3.26, 1153.0]),
    driver(CRYPTO, "GPU IMIX", CIPHER_GPU, Size::Imix, [2.29, 879.6]),
    driver(PLATFORM, "CPU 243", BOTH_CPU, Size::Octets(243), [120.38, 4.91]),
    driver(PLATFORM, "CPU 486", BOTH_CPU, Size::Octets(486), [240.54, 4.76]),
    driver(PLATFORM, "CPU 1458", BOTH_CPU, Size::Octets(1458), [720.14, 4.69]),
    driver(PLATFORM, "GPU 243", BOTH_GPU, Size::Octets(243), [14.7, 43.39]),
    driver(PLATFORM, "GPU 486", BOTH_GPU, Size::Octets(486), [22.11, 55.66]),
    driver(PLATFORM, "GPU 1458", BOTH_GPU, Size::Octets(1458), [27.82, 130.86]),
];

/// Table 6.1, C2 round-robin: the row, the test, whether rings are halved, Gbit/s, and seconds.
pub const RINGS: [(&str, Test, bool, [f64; 2]); 4] = [
    ("Heavy 64", Test::Stress, true, [0.09469, 0.1074]),
    ("Heavy 128", Test::Stress, false, [0.09494, 0.1268]),
    ("Low 64", Test::Low, true, [0.01891, 0.2615]),
    ("Low 128", Test::Low, false, [0.01886, 0.5072]),
];

/// Table 6.2, the low test in C1: the row, the scheduler, CPU workers, and milliwatts of GPU, CPU, SOC and DDR RAM.
pub const WORKERS: [(&str, &str, usize, [f64; 4]); 8] = [
    ("Round-robin 1", "round-robin", 1, [920.0, 6411.0, 2607.0, 153.0]),
    ("Round-robin 2", "round-robin", 2, [918.0, 7366.0, 2757.0, 305.0]),
    ("Round-robin 3", "round-robin", 3, [918.0, 8396.0, 2757.0, 306.0]),
    ("Round-robin 4", "round-robin", 4, [855.0, 9339.0, 2754.0, 306.0]),
    ("ML 1", "q-learning", 1, [1073.0, 5608.0, 2607.0, 153.0]),
    ("ML 2", "q-learning", 2, [1072.0, 6648.0, 2606.0, 153.0]),
    ("ML 3", "q-learning", 3, [1072.0, 7814.0, 2604.0, 153.0]),
    ("ML 4", "q-learning", 4, [1071.0, 8743.0, 2639.0, 153.0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rails_add_up_to_the_averages() {
        for ([_, table], _, rows) in POWER {
            for (row, of) in rows.iter().zip(ROWS) {
                let sum: f64 = row.iter().take(4).sum();
                assert!((sum - row[4]).abs() <= 5.0, "table {table}, {}: {sum} and {}", row_name(of), row[4]);
            }
        }
    }

    /// What is full all the time holds as many packets as go through it in a packet's latency: about 256 in a core's rings, two batches in the accelerator's.
    #[test]
    fn latency_and_throughput_of_drivers_go_together() {
        for driver in DRIVERS {
            let octets = match driver.size {
                Size::Octets(octets) => f64::from(octets),
                Size::Imix => 777.6,
            };
            let inside = driver.latency_ms / 1e3 * driver.mbps * 1e6 / 8.0 / octets;
            assert!((220.0..420.0).contains(&inside), "table {}, {}: {inside}", driver.tables[0], driver.row);
        }
    }
}
