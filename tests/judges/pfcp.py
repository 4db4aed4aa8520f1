"""An SMF made of scapy's PFCP layer: builds requests, and says as JSON lines what scapy reads in the answers.

Usage: pfcp.py UPF-ADDRESS OWN-ADDRESS CAPTURE-FILE

After the session is modified it waits for a line on standard input, so that the caller can look at the UPF. All datagrams go
to the capture file.
"""

import json
import socket
import sys

from scapy.all import IP, UDP, Raw, conf, wrpcap
from scapy.contrib.pfcp import *  # noqa: F403 (the layer's own idiom)

conf.verb = 0
UPF, OWN, CAPTURE = sys.argv[1:4]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((OWN, 8805))
sock.settimeout(5)
capture = []


def ies(message):
    """All IEs of a message, with those in groups behind their group."""
    for ie in getattr(message, "IE_list", []):
        yield ie
        yield from ies(ie)


def first(message, kind, field):
    return next((getattr(ie, field) for ie in ies(message) if isinstance(ie, kind)), None)


def keep(source, destination, data):
    capture.append(IP(src=source, dst=destination) / UDP(sport=8805, dport=8805) / Raw(data))


def ask(what, message, seq, seid=None):
    """Sends a request, returns the answer, and says what is in it."""
    header = PFCP(version=1, seq=seq) if seid is None else PFCP(version=1, S=1, seid=seid, seq=seq)
    data = bytes(header / message)
    keep(OWN, UPF, data)
    sock.sendto(data, (UPF, 8805))
    while True:
        data, _ = sock.recvfrom(65535)
        keep(UPF, OWN, data)
        answer = PFCP(data)
        # The UPF asks for heartbeats of its own.
        if answer.seq == seq and not type(answer.payload).__name__.endswith("Request"):
            break
    body = answer.payload
    print(json.dumps({
        "what": what,
        "layer": type(body).__name__,
        "seid": answer.seid if answer.S else None,
        "cause": first(body, IE_Cause, "cause"),
        "node_id": first(body, IE_NodeId, "id_type"),
        "offending_ie": first(body, IE_OffendingIE, "type"),
        "unread": [type(ie).__name__ for ie in ies(body) if type(ie).__name__ in ("IE_NotImplemented", "Raw")],
        "ies": [type(ie).__name__ for ie in ies(body)],
        "teid": first(body, IE_FTEID, "TEID"),
        "recovery": first(body, IE_RecoveryTimeStamp, "timestamp"),
        "urr": first(body, IE_URR_Id, "id"),
    }), flush=True)
    return answer


def establishment(far=1, ue="10.60.0.7"):
    uplink = IE_CreatePDR(IE_list=[
        IE_PDR_Id(id=1), IE_Precedence(precedence=255),
        IE_PDI(IE_list=[
            IE_SourceInterface(interface="Access"), IE_FTEID(CH=1, V4=1, CHID=1, choose_id=5),
            IE_NetworkInstance(instance="internet"),
        ]),
        IE_OuterHeaderRemoval(header="GTP-U/UDP/IPv4"),
        IE_FAR_Id(id=far), IE_URR_Id(id=1), IE_QER_Id(id=1),
    ])
    downlink = IE_CreatePDR(IE_list=[
        IE_PDR_Id(id=2), IE_Precedence(precedence=255),
        IE_PDI(IE_list=[
            IE_SourceInterface(interface="Core"), IE_UE_IP_Address(SD=1, V4=1, ipv4=ue),
            IE_SDF_Filter(FD=1, flow_description="permit out ip from any to assigned"),
        ]),
        IE_FAR_Id(id=2), IE_URR_Id(id=1), IE_QER_Id(id=1),
    ])
    return PFCPSessionEstablishmentRequest(IE_list=[
        IE_NodeId(id_type="IPv4", ipv4=OWN), IE_FSEID(v4=1, seid=0xC0FFEE, ipv4=OWN),
        uplink, downlink,
        IE_CreateFAR(IE_list=[
            IE_FAR_Id(id=1), IE_ApplyAction(FORW=1),
            IE_ForwardingParameters(IE_list=[IE_DestinationInterface(interface="Core")]),
        ]),
        IE_CreateFAR(IE_list=[IE_FAR_Id(id=2), IE_ApplyAction(BUFF=1, NOCP=1)]),
        IE_CreateURR(IE_list=[
            IE_URR_Id(id=1), IE_MeasurementMethod(VOLUM=1), IE_ReportingTriggers(volume_threshold=1),
            IE_VolumeThreshold(TOVOL=1, total=1 << 30),
        ]),
        IE_CreateQER(IE_list=[IE_QER_Id(id=1), IE_GateStatus(ul="OPEN", dl="OPEN"), IE_QFI(QFI=9)]),
        IE_PDNType(pdn_type="IPv4"),
    ])


ask("heartbeat", PFCPHeartbeatRequest(IE_list=[IE_RecoveryTimeStamp(timestamp=77)]), 1)
ask("stranger", establishment(), 2, 0)
ask("association", PFCPAssociationSetupRequest(IE_list=[
    IE_NodeId(id_type="IPv4", ipv4=OWN), IE_RecoveryTimeStamp(timestamp=77),
]), 3)
answer = ask("establishment", establishment(), 4, 0)
seid = first(answer.payload, IE_FSEID, "seid")
ask("refused", establishment(far=9, ue="10.60.0.8"), 5, 0)
ask("modification", PFCPSessionModificationRequest(IE_list=[
    IE_UpdateFAR(IE_list=[
        IE_FAR_Id(id=2), IE_ApplyAction(FORW=1),
        IE_UpdateForwardingParameters(IE_list=[
            IE_DestinationInterface(interface="Access"),
            IE_OuterHeaderCreation(GTPUUDPIPV4=1, TEID=0x1234, ipv4="192.0.2.10"),
        ]),
    ]),
    IE_QueryURR(IE_list=[IE_URR_Id(id=1)]),
]), 6, seid)
ask("unknown", PFCPSessionModificationRequest(IE_list=[]), 7, seid ^ 0xFF00000000)
print(json.dumps({"what": "ready", "seid": seid}), flush=True)
sys.stdin.readline()
ask("deletion", PFCPSessionDeletionRequest(IE_list=[]), 8, seid)
ask("release", PFCPAssociationReleaseRequest(IE_list=[IE_NodeId(id_type="IPv4", ipv4=OWN)]), 9)
wrpcap(CAPTURE, capture)
