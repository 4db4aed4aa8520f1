//! What protocols and applications are for.

macro_rules! categories {
    ($($variant:ident = $name:literal, $about:literal;)*) => {
        /// What a protocol or an application is for.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Category {
            $(#[doc = $about] $variant,)*
        }

        impl Category {
            /// All, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As it is written in signatures and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// One line about it.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),* }
            }
        }
    };
}

categories! {
    Web = "web", "Pages, and what carries them";
    Video = "video", "Films, clips and television";
    Music = "music", "Music, radio and podcasts";
    Social = "social", "Social networks";
    Messaging = "messaging", "Messages between people";
    Voice = "voice", "Calls and conferences";
    Mail = "mail", "Electronic mail";
    Games = "games", "Games and consoles";
    FileTransfer = "file-transfer", "Files: shared, stored, sent";
    PeerToPeer = "peer-to-peer", "Exchange among peers without a server";
    Vpn = "vpn", "Private networks, proxies and anonymity";
    RemoteAccess = "remote-access", "Terminals and desktops elsewhere";
    Database = "database", "Databases, queues and caches";
    Industrial = "industrial", "Plants, power grids and buildings";
    Things = "things", "Devices of the internet of things";
    Network = "network", "What a network needs to work: names, addresses, routes, time";
    System = "system", "What computers do by themselves: discovery, directories, management";
    Update = "update", "Software and its updates";
    Cloud = "cloud", "Computing, storage and delivery for others";
    Productivity = "productivity", "Work: documents, meetings, projects";
    Development = "development", "Software development";
    Shopping = "shopping", "Shops and markets";
    Finance = "finance", "Banks, payments and currencies";
    News = "news", "Newspapers, magazines, weather";
    Travel = "travel", "Journeys, maps and rides";
    Education = "education", "Learning and reference";
    Health = "health", "Health and sport";
    Adult = "adult", "For adults only";
    Dating = "dating", "Meeting people";
    Gambling = "gambling", "Betting and lotteries";
    Advertising = "advertising", "Advertisements and their trade";
    Analytics = "analytics", "Measuring what users do";
    Security = "security", "Certificates, protection and scanning";
    Assistant = "assistant", "Machines that answer: language models and voice assistants";
    Other = "other", "None of these";
}

impl Category {
    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}
