// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestListenersAreThoseOfTheKernel(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("this machine has no %s", at)
			continue
		}
		defer func() { _ = listener.Close() }()
		found, err := listeners(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(found, listener.Addr().String()) {
			t.Errorf("we listen at %s, and are found at %v", listener.Addr(), found)
		}
	}
}

// listeners are the TCP addresses on which a process listens, from the kernel's table.
func listeners(pid int) ([]string, error) {
	own, err := socketsOf(pid)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			const local, state, inode, listening = 1, 3, 9, "0A"
			fields := strings.Fields(line)
			if len(fields) <= inode || fields[state] != listening || !slices.Contains(own, fields[inode]) {
				continue
			}
			address, err := addressOf(fields[local])
			if err != nil {
				return nil, err
			}
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return all, nil
}

// argumentsOf returns the command line of a process.
func argumentsOf(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(string(line), "\x00"), err
}

// socketsOf returns the inodes of a process's sockets.
func socketsOf(pid int) ([]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var inodes []string
	for _, file := range files {
		// The descriptor was closed in between.
		target, err := os.Readlink(dir + "/" + file.Name())
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if err == nil && isSocket {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes, nil
}

// addressOf parses an address of the kernel's table: words in the machine's byte order, which is
// little-endian wherever the tests run.
func addressOf(entry string) (string, error) {
	host, port, _ := strings.Cut(entry, ":")
	ip, err := hex.DecodeString(host)
	if err != nil {
		return "", err
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(number, 10)), nil
}
