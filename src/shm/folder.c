/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints in a folder.
 */
#include "shm/folder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "base/place.h"
#include "os/file.h"
#include "os/process.h"
#include "os/socket.h"

#define BACKLOG 4096

/* "ep-", the host, "-", the namespace, "-" and the address. */
#define MARK "ep-"
#define HEAD_LEN 17

/* Begins the name that a socket has until it listens; a random number ends
 * it. */
#define HIDDEN "."

/* How much a new endpoint checks to find leftovers: others check the rest. */
#define SWEEP_MOST 16

/* Between bind() and listen() a socket refuses, too; that takes microseconds. */
#define HIDDEN_AGE 60

static_assert(WF_BASE_FOLDER_LEN + sizeof("/" HIDDEN) + HEAD_LEN + 47 <=
		      sizeof(((struct sockaddr_un *)0)->sun_path),
	      "room for the longest address");

/* False: the path would be too long. */
static bool make_path(struct sockaddr_un *un, const char *folder,
		      const char *hidden, const char *name)
{
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	len = snprintf(un->sun_path, sizeof(un->sun_path), "%s/%s%s", folder,
		       hidden, name);
	return len > 0 && (size_t)len < sizeof(un->sun_path);
}

static void make_name(char *name, size_t room, uint64_t place,
		      const struct wf_addr *addr)
{
	char text[WF_ADDR_STR_LEN];

	snprintf(name, room, MARK "%06x-%06x-%s", wf_base_place_host(place),
		 wf_base_place_space(place),
		 wf_base_addr_str(addr, text, sizeof(text)));
}

/* Whether @name is of an endpoint of this host. */
static bool is_here(const char *name, uint64_t place)
{
	unsigned int host, space;
	int len = 0;

	return sscanf(name, MARK "%6x-%6x-%n", &host, &space, &len) == 2 &&
	       len == HEAD_LEN && host == wf_base_place_host(place);
}

static int open_socket(void)
{
	return wf_os_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
}

/* A name that nobody else has or could have made before. */
static int make_hidden(struct sockaddr_un *un, const struct wf_shm_home *home)
{
	char name[HEAD_LEN + 17];
	uint64_t number;
	int err = wf_os_random(&number, sizeof(number), true);

	if (err)
		return err;
	snprintf(name, sizeof(name), MARK "%06x-%06x-%016llx",
		 wf_base_place_host(home->place),
		 wf_base_place_space(home->place), (unsigned long long)number);
	return make_path(un, home->folder, HIDDEN, name) ? 0 : -ENAMETOOLONG;
}

/* Removes the name of @file, a socket that refuses. Meanwhile a process may
 * have put its own socket there, which must stay, and no call removes a name
 * only if it is still that of a certain file. So the name is moved aside and
 * looked at there. A file that was moved by mistake goes back: its owner lives
 * and has the port, so nobody else takes the name in between. */
static void clear_away(const struct wf_shm_home *home,
		       const struct sockaddr_un *un, int file)
{
	struct sockaddr_un aside;

	if (wf_os_is_named(file, un->sun_path) != 1 ||
	    make_hidden(&aside, home) ||
	    wf_os_rename(un->sun_path, aside.sun_path))
		return;
	if (wf_os_is_named(file, aside.sun_path) == 1)
		wf_os_unlink(aside.sun_path);
	else
		wf_os_rename(aside.sun_path, un->sun_path);
}

/* Connects to the socket that listens as @un, and removes what a process left
 * that was killed. The file is held meanwhile, so that its number stands for it
 * alone, and the connection goes to it: in a folder of several users a name may
 * be a link to somebody else's socket. Whatever is no socket is nobody who
 * listens, and none of ours to remove. */
static int meet(const struct wf_shm_home *home, const struct sockaddr_un *un)
{
	int file = wf_os_socket_file(un->sun_path), fd, err;

	if (file < 0)
		return file == -ENOENT || file == -ENOTDIR ||
				       file == -ENOTSOCK ?
			       -ECONNREFUSED :
			       file;
	fd = open_socket();
	err = fd < 0 ? fd : wf_os_connect_file(fd, file);
	if (err && fd >= 0)
		wf_os_close(fd);
	if (err == -ECONNREFUSED)
		clear_away(home, un, file);
	wf_os_close(file);
	if (!err)
		return fd;
	return err == -EPROTOTYPE ? -ECONNREFUSED : err;
}

/* -- listening -------------------------------------------------------------- */

struct sweep {
	const struct wf_shm_home *home;
	uint64_t draw; /* a bit for each entry: look at it? */
	unsigned int seen, looked_at;
};

static bool sweep_one(const char *name, uint64_t age, void *arg)
{
	struct sweep *sweep = arg;
	const char *shown = name[0] == HIDDEN[0] ? name + 1 : name;
	struct sockaddr_un un;
	int fd;

	if (!is_here(shown, sweep->home->place) ||
	    (shown != name && age < HIDDEN_AGE) ||
	    !make_path(&un, sweep->home->folder, "", name))
		return false;
	if (!(sweep->draw >> sweep->seen++ % 64 & 1))
		return false;
	fd = meet(sweep->home, &un);
	if (fd >= 0)
		wf_os_close(fd);
	return ++sweep->looked_at == SWEEP_MOST;
}

/* Each endpoint looks at some files, drawn at random, so that a thousand that
 * start together do not all ask each other. */
static void sweep(const struct wf_shm_home *home)
{
	struct sweep sweep = { .home = home, .draw = UINT64_MAX };

	wf_os_random(&sweep.draw, sizeof(sweep.draw), false);
	wf_os_folder_each(home->folder, sweep_one, &sweep);
}

/* Gives the socket that listens in @hidden its name. */
static int show(const struct wf_shm_home *home,
		const struct sockaddr_un *hidden, const struct sockaddr_un *un)
{
	int fd = meet(home, un), err;

	if (fd >= 0)
		wf_os_close(fd);
	/* No process of our place can be there: it would have our port. */
	if (fd >= 0 || fd == -EAGAIN)
		return -EADDRINUSE;
	if (fd != -ECONNREFUSED && fd != -EACCES)
		return fd;
	err = wf_os_rename(hidden->sun_path, un->sun_path);
	/* What another user put there can be replaced by that user alone. */
	return err == -EPERM || err == -EACCES ? -EADDRINUSE : err;
}

int wf_shm_folder_listen(const struct wf_shm_home *home,
			 const struct wf_addr *addr, bool open)
{
	char name[HEAD_LEN + WF_ADDR_STR_LEN];
	struct sockaddr_un un, hidden;
	int fd, err;

	make_name(name, sizeof(name), home->place, addr);
	if (!make_path(&un, home->folder, "", name))
		return -ENAMETOOLONG;
	err = make_hidden(&hidden, home);
	if (err)
		return err;
	fd = open_socket();
	if (fd < 0)
		return fd;
	err = wf_os_bind(fd, (struct sockaddr *)&hidden, sizeof(hidden));
	if (err)
		goto err_close;
	/* The list of users decides, not the file: it knows more of them than
	 * an owner and a group. */
	err = wf_os_chmod(hidden.sun_path, open ? 0666 : 0600);
	if (!err)
		err = wf_os_listen(fd, BACKLOG);
	if (err)
		goto err_unlink;
	/* Not after our name is there: it would be tried, and wake us. */
	sweep(home);
	err = show(home, &hidden, &un);
	if (err)
		goto err_unlink;
	return fd;

err_unlink:
	wf_os_unlink(hidden.sun_path);
err_close:
	wf_os_close(fd);
	return err;
}

void wf_shm_folder_leave(const struct wf_shm_home *home,
			 const struct wf_addr *addr)
{
	char name[HEAD_LEN + WF_ADDR_STR_LEN];
	struct sockaddr_un un;

	make_name(name, sizeof(name), home->place, addr);
	if (make_path(&un, home->folder, "", name))
		wf_os_unlink(un.sun_path);
}

/* -- connecting ------------------------------------------------------------- */

struct search {
	const struct wf_shm_home *home;
	char text[WF_ADDR_STR_LEN]; /* the address looked for */
	int fd;			    /* to the one that was found, or -errno */
};

static bool search_one(const char *name, uint64_t age, void *arg)
{
	struct search *search = arg;
	struct sockaddr_un un;
	int fd;

	(void)age;
	if (!is_here(name, search->home->place) ||
	    strcmp(name + HEAD_LEN, search->text) != 0 ||
	    !make_path(&un, search->home->folder, "", name))
		return false;
	fd = meet(search->home, &un);
	if (fd == -ECONNREFUSED)
		return false;
	if (search->fd == -ECONNREFUSED) {
		search->fd = fd;
		return false;
	}
	/* Two namespaces have this address: it does not say which is meant. */
	if (fd >= 0)
		wf_os_close(fd);
	if (search->fd >= 0)
		wf_os_close(search->fd);
	search->fd = -ENOTUNIQ;
	return true;
}

static int search(const struct wf_shm_home *home, const struct wf_addr *addr)
{
	struct search search = { .home = home, .fd = -ECONNREFUSED };
	int err;

	wf_base_addr_str(addr, search.text, sizeof(search.text));
	err = wf_os_folder_each(home->folder, search_one, &search);
	if (!err || search.fd != -ECONNREFUSED)
		return search.fd;
	return err == -ENOENT ? -ECONNREFUSED : err;
}

int wf_shm_folder_connect(const struct wf_shm_home *home,
			  const struct wf_addr *addr)
{
	char name[HEAD_LEN + WF_ADDR_STR_LEN];
	uint64_t place = wf_base_place_of(addr);
	struct sockaddr_un un;

	if (!place)
		return search(home, addr);
	make_name(name, sizeof(name), place, addr);
	if (!make_path(&un, home->folder, "", name))
		return -ENAMETOOLONG;
	return meet(home, &un);
}
