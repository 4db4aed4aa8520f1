/* Kernel interfaces behind net_af_packet: between af_packet.c and shim.c. */
#ifndef MR_AF_PACKET_H
#define MR_AF_PACKET_H

#include <stdint.h>

struct mr_interface {
	uint32_t mtu; /* 0: there is none of that name */
	uint8_t up;
	uint8_t merges; /* packets that come in, into longer ones */
	uint8_t promiscuous;
	uint8_t reserved;
};
_Static_assert(sizeof(struct mr_interface) == 8, "mirrored in src/ffi.rs");

void mr_rings_made(uint16_t port);
void mr_rings_failed(void);
void mr_rings_gone(uint16_t port);

#endif
