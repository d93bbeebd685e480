// Ways to be a guest in a process, for hosts that are linked with them and for hosts that load them.
#ifndef GUEST_H
#define GUEST_H

enum { kEvents = 10 };

struct guest;

// Begins in a way, with a buffer of so many MiB. Null, and a message in `error`, if that is not possible.
struct guest* GuestBegin(const char* way, const char* directory, unsigned mebibytes, char* error, unsigned long size);

// Records ten events of a name; a client has a program do so, and returns 0 if that went well.
int GuestRecord(struct guest* guest, const char* name, const char* program);

// Ends; 0, or a message in `error`. The guest is freed.
int GuestEnd(struct guest* guest, char* error, unsigned long size);

// What a forked child can do with what its parent has: nothing, without waiting. 0 if it is so.
int GuestEndInChild(struct guest* guest);

// Has a library print a message.
void GuestSay(void);

#endif
