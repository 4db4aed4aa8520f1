//! Types of information elements (TS 29.244 §8.1.2, table 8.1.2-1): those this crate reads or writes.

macro_rules! ie_types {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: u16 = $value;)*

        /// The standard's name of a type, or `None` for one that this crate ignores.
        pub const fn name(kind: u16) -> Option<&'static str> {
            match kind {
                $($value => Some($text),)*
                _ => None,
            }
        }
    };
}

ie_types! {
    CREATE_PDR = 1, "Create PDR";
    PDI = 2, "PDI";
    CREATE_FAR = 3, "Create FAR";
    FORWARDING_PARAMETERS = 4, "Forwarding Parameters";
    CREATE_URR = 6, "Create URR";
    CREATE_QER = 7, "Create QER";
    CREATED_PDR = 8, "Created PDR";
    UPDATE_PDR = 9, "Update PDR";
    UPDATE_FAR = 10, "Update FAR";
    UPDATE_FORWARDING_PARAMETERS = 11, "Update Forwarding Parameters";
    UPDATE_URR = 13, "Update URR";
    UPDATE_QER = 14, "Update QER";
    REMOVE_PDR = 15, "Remove PDR";
    REMOVE_FAR = 16, "Remove FAR";
    REMOVE_URR = 17, "Remove URR";
    REMOVE_QER = 18, "Remove QER";
    CAUSE = 19, "Cause";
    SOURCE_INTERFACE = 20, "Source Interface";
    F_TEID = 21, "F-TEID";
    NETWORK_INSTANCE = 22, "Network Instance";
    SDF_FILTER = 23, "SDF Filter";
    APPLICATION_ID = 24, "Application ID";
    GATE_STATUS = 25, "Gate Status";
    MBR = 26, "MBR";
    GBR = 27, "GBR";
    QER_CORRELATION_ID = 28, "QER Correlation ID";
    PRECEDENCE = 29, "Precedence";
    TRANSPORT_LEVEL_MARKING = 30, "Transport Level Marking";
    VOLUME_THRESHOLD = 31, "Volume Threshold";
    TIME_THRESHOLD = 32, "Time Threshold";
    INACTIVITY_DETECTION_TIME = 36, "Inactivity Detection Time";
    REPORTING_TRIGGERS = 37, "Reporting Triggers";
    REDIRECT_INFORMATION = 38, "Redirect Information";
    REPORT_TYPE = 39, "Report Type";
    OFFENDING_IE = 40, "Offending IE";
    FORWARDING_POLICY = 41, "Forwarding Policy";
    DESTINATION_INTERFACE = 42, "Destination Interface";
    UP_FUNCTION_FEATURES = 43, "UP Function Features";
    APPLY_ACTION = 44, "Apply Action";
    DOWNLINK_DATA_SERVICE_INFORMATION = 45, "Downlink Data Service Information";
    DOWNLINK_DATA_NOTIFICATION_DELAY = 46, "Downlink Data Notification Delay";
    PFCPSMREQ_FLAGS = 49, "PFCPSMReq-Flags";
    PFCPSRRSP_FLAGS = 50, "PFCPSRRsp-Flags";
    PDR_ID = 56, "PDR ID";
    F_SEID = 57, "F-SEID";
    APPLICATION_IDS_PFDS = 58, "Application ID's PFDs";
    PFD_CONTEXT = 59, "PFD context";
    NODE_ID = 60, "Node ID";
    PFD_CONTENTS = 61, "PFD contents";
    MEASUREMENT_METHOD = 62, "Measurement Method";
    USAGE_REPORT_TRIGGER = 63, "Usage Report Trigger";
    MEASUREMENT_PERIOD = 64, "Measurement Period";
    FQ_CSID = 65, "FQ-CSID";
    VOLUME_MEASUREMENT = 66, "Volume Measurement";
    DURATION_MEASUREMENT = 67, "Duration Measurement";
    APPLICATION_DETECTION_INFORMATION = 68, "Application Detection Information";
    TIME_OF_FIRST_PACKET = 69, "Time of First Packet";
    TIME_OF_LAST_PACKET = 70, "Time of Last Packet";
    QUOTA_HOLDING_TIME = 71, "Quota Holding Time";
    VOLUME_QUOTA = 73, "Volume Quota";
    TIME_QUOTA = 74, "Time Quota";
    START_TIME = 75, "Start Time";
    END_TIME = 76, "End Time";
    QUERY_URR = 77, "Query URR";
    USAGE_REPORT_MODIFICATION = 78, "Usage Report (Session Modification Response)";
    USAGE_REPORT_DELETION = 79, "Usage Report (Session Deletion Response)";
    USAGE_REPORT_REPORT = 80, "Usage Report (Session Report Request)";
    URR_ID = 81, "URR ID";
    LINKED_URR_ID = 82, "Linked URR ID";
    DOWNLINK_DATA_REPORT = 83, "Downlink Data Report";
    OUTER_HEADER_CREATION = 84, "Outer Header Creation";
    CREATE_BAR = 85, "Create BAR";
    UPDATE_BAR = 86, "Update BAR (Session Modification Request)";
    REMOVE_BAR = 87, "Remove BAR";
    BAR_ID = 88, "BAR ID";
    CP_FUNCTION_FEATURES = 89, "CP Function Features";
    APPLICATION_INSTANCE_ID = 91, "Application Instance ID";
    FLOW_INFORMATION = 92, "Flow Information";
    UE_IP_ADDRESS = 93, "UE IP Address";
    OUTER_HEADER_REMOVAL = 95, "Outer Header Removal";
    RECOVERY_TIME_STAMP = 96, "Recovery Time Stamp";
    ERROR_INDICATION_REPORT = 99, "Error Indication Report";
    MEASUREMENT_INFORMATION = 100, "Measurement Information";
    NODE_REPORT_TYPE = 101, "Node Report Type";
    USER_PLANE_PATH_FAILURE_REPORT = 102, "User Plane Path Failure Report";
    REMOTE_GTPU_PEER = 103, "Remote GTP-U Peer";
    UR_SEQN = 104, "UR-SEQN";
    FAR_ID = 108, "FAR ID";
    QER_ID = 109, "QER ID";
    PFCP_ASSOCIATION_RELEASE_REQUEST = 111, "PFCP Association Release Request";
    GRACEFUL_RELEASE_PERIOD = 112, "Graceful Release Period";
    PDN_TYPE = 113, "PDN Type";
    FAILED_RULE_ID = 114, "Failed Rule ID";
    USER_PLANE_INACTIVITY_TIMER = 117, "User Plane Inactivity Timer";
    RQI = 123, "RQI";
    QFI = 124, "QFI";
    ETHERNET_PACKET_FILTER = 132, "Ethernet Packet Filter";
    SUGGESTED_BUFFERING_PACKETS_COUNT = 140, "Suggested Buffering Packets Count";
    ETHERNET_PDU_SESSION_INFORMATION = 142, "Ethernet PDU Session Information";
    FRAMED_ROUTE = 153, "Framed-Route";
    FRAMED_IPV6_ROUTE = 155, "Framed-IPv6-Route";
    AVERAGING_WINDOW = 157, "Averaging Window";
    PAGING_POLICY_INDICATOR = 158, "Paging Policy Indicator";
    USER_ID = 141, "User ID";
    APN_DNN = 159, "APN/DNN";
    INTERFACE_TYPE = 160, "3GPP Interface Type";
    QUOTA_VALIDITY_TIME = 181, "Quota Validity Time";
    PFCP_SESSION_RETENTION_INFORMATION = 183, "PFCP Session Retention Information";
    USER_PLANE_PATH_RECOVERY_REPORT = 187, "User Plane Path Recovery Report";
    SOURCE_IP_ADDRESS = 192, "Source IP Address";
    UPDATED_PDR = 256, "Updated PDR";
    S_NSSAI = 257, "S-NSSAI";
}
