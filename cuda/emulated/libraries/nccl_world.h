// The ranks of a communicator in one process. Ranks of other processes are reached through files (far.cpp).
#pragma once
#include <string.h>
#include "gpu.h"

// Meeting is the n-th collective of a communicator.
struct Meeting {
	std::vector<Work> issued; // by rank, the ranks of this process that have called
	std::vector<const Part *> part;
	int begun = 0;
};

// The sends from one rank to another, or the receives: work and its part.
typedef std::vector<std::pair<Work, const Part *>> Line;

struct World {
	std::string id;
	int ranks, joined = 0, splits = 0;
	std::vector<ncclComm *> comm; // of this process
	std::map<long, Meeting> meetings;
	std::map<std::pair<int, int>, std::pair<Line, Line>> lines; // by sender and receiver: sends and receives
	std::set<std::pair<int, int>> called; // ranks of this process and the peers with which they have exchanged a message
	std::set<std::pair<int, char>> used; // ranks of this process and the kinds of collectives that they have called
	std::string far; // the directory of a world whose ranks are in several processes, otherwise ""
	long parts = 0;  // how often it was split
};

struct ncclComm : Object {
	World *world;
	int rank, error = 0, color = 0, key = 0;
	bool split = false;
	ncclComm_t *part = nullptr;
	long turns = 0, first = 0; // first: the turn of the first collective of the last group
	Work last; // the last call
};

size_t width(int type); // in bytes
std::string text(const Part &p);
bool pairwise(const Part &p);
void compute(const std::vector<const Part *> &p);
bool inMemory(const Work &w, const Part &p);
void end(const Work &w);
ncclComm *join(World *w, int rank);
World *create(int ranks);

// For worlds whose ranks are in several processes.
std::string farFolder(const char *id);
void farJoin(World *w, int rank);
bool farJoined(World *w); // all ranks have joined
void farSplit(ncclComm *c);
void farParts(World *w);  // splits the world once all ranks have named their colors
void farAbort(World *w);
bool farAborted(World *w);
void farBegin(const Work &w, const Part &p);

// For registered memory (register.cpp).
int registeredOf(const ncclComm *c);
void registeredAlike(const std::vector<const Part *> &parts);
