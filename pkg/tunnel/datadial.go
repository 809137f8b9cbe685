// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

const (
	// dataTimeout limits how long an agent tries to open a data connection. The caller waits.
	dataTimeout = 2 * time.Second
	// dataAttempts is how often it tries to reach the gateway that has made the offer.
	dataAttempts = 10
)

// DialData opens a data connection at the gateway's own port. Token returns the nonce of the offer.
func (d *HubDialer) DialData(ctx context.Context) (*net.TCPConn, error) {
	conn, err := d.open(ctx, DataProtocol)
	if err != nil {
		return nil, err
	}
	tcp, err := belowTLS(conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tcp, nil
}

// dataDialer opens the data connection of a nonce.
type dataDialer func(ctx context.Context, nonce string) (*net.TCPConn, error)

// dataDialerFor returns nil if sessions that were reached like this have no data connections.
func (c *Connector) dataDialerFor(port *PortInfo) dataDialer {
	if c.Data == nil || port == nil {
		return nil
	}
	return func(ctx context.Context, nonce string) (*net.TCPConn, error) {
		ctx, cancel := context.WithTimeout(ctx, dataTimeout)
		defer cancel()
		token := hex.EncodeToString([]byte(nonce))
		for attempt := 1; ; attempt++ {
			conn, err := c.Data(ctx, *port, token)
			var refused *HubError
			if !errors.As(err, &refused) || refused.StatusCode != http.StatusMisdirectedRequest || attempt == dataAttempts {
				return conn, err
			}
		}
	}
}

// connection returns where the bytes of an accepted stream are: in the stream, or on a data connection
// if the gateway offers one and it can be opened. A gateway cannot have other bytes than those to the
// API server unencrypted.
func (s *server) connection(ctx context.Context, h header, stream net.Conn) (net.Conn, Code) {
	if h.nonce == "" || h.target != APIServer || s.data == nil {
		return stream, codeOK
	}
	tcp, err := s.data(ctx, h.nonce)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Could not open a data connection to the gateway; the tunnel carries the bytes", "reason", err.Error())
		return stream, codeOK
	}
	return newDataConn(tcp, stream), codeOnData
}
