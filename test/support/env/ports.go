// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are below the range for outgoing connections (32768 and up on Linux). A port in that range
// can be taken by a client while its server restarts, or a retrying client can connect to itself.
// Those below 20100 are for the in-memory clusters of Cluster API.
const (
	firstPort = 20100
	lastPort  = 29999
)

// FreePorts returns n ports on 127.0.0.1 for servers that a suite starts itself. No server listens
// on them now, and no outgoing connection will use them.
func FreePorts(n int) ([]int, error) {
	r, err := reservePorts(n)
	if err != nil {
		return nil, err
	}
	r.release()
	return r.ports, nil
}

// reservation keeps ports from other reservations, in this process and in others: a port's lock
// file is locked until release, or until the process ends. The port itself stays free for its
// program.
type reservation struct {
	ports []int
	locks []*os.File
}

// reservePorts finds n free ports on loopback. Release it when the programs listen.
func reservePorts(n int) (*reservation, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("fleetgate-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserving ports: %w", err)
	}
	r := &reservation{}
	for tries := 0; len(r.ports) < n; tries++ {
		if tries > lastPort-firstPort {
			r.release()
			return nil, errors.New("reserving ports: none is free")
		}
		if err := r.try(dir, firstPort+rand.IntN(lastPort-firstPort+1)); err != nil {
			r.release()
			return nil, fmt.Errorf("reserving ports: %w", err)
		}
	}
	return r, nil
}

// try adds the port if it is free. Only a broken lock folder is an error.
func (r *reservation) try(dir string, port int) error {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !isFree(port) {
		return lock.Close()
	}
	r.ports = append(r.ports, port)
	r.locks = append(r.locks, lock)
	return nil
}

func (r *reservation) release() {
	for _, lock := range r.locks {
		// Closing unlocks. The empty file stays, because removing it would let two processes lock
		// the port.
		_ = lock.Close()
	}
	r.locks = nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", loopback("127.0.0.1", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
