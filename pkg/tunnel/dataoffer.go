// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DataProtocol is the token in the Upgrade header of a data connection.
	DataProtocol = "fleetgate-data/1"
	// maxOffers limits the data connections of a session that its agent may open at a time.
	maxOffers = 16
	// dataRetry is how long a session makes no offers after its agent has used the stream instead.
	dataRetry = 5 * time.Minute
)

// offers are the data connections that agents may open now, by nonce.
type offers struct {
	// mu guards byNonce.
	mu      sync.Mutex
	byNonce map[string]*offer
}

// offer is one data connection that an agent may open.
type offer struct {
	member, nonce string
	// conn is unbuffered: a connection is either claimed or closed.
	conn chan *net.TCPConn
	// done is closed when nobody waits for the connection any more.
	done chan struct{}
}

func (o *offers) add(member string) *offer {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // It never fails.
	added := &offer{member: member, nonce: string(nonce), conn: make(chan *net.TCPConn), done: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byNonce[added.nonce] = added
	return added
}

// take returns the offer of a nonce, once. It returns nil if there is none, or if it was made to
// another member.
func (o *offers) take(member, nonce string) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := o.byNonce[nonce]
	delete(o.byNonce, nonce)
	if found == nil || found.member != member {
		return nil
	}
	return found
}

func (o *offers) withdraw(ended *offer) {
	o.mu.Lock()
	delete(o.byNonce, ended.nonce)
	o.mu.Unlock()
	close(ended.done)
}

// deliver passes the connection to the dial that has made the offer.
func (o *offer) deliver(conn *net.TCPConn) {
	select {
	case o.conn <- conn:
	case <-o.done:
		_ = conn.Close()
	}
}

func (o *offer) claim(ctx context.Context) (*net.TCPConn, error) {
	select {
	case conn := <-o.conn:
		return conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dataPath makes the offers of one session. Its nil value makes none.
type dataPath struct {
	offers  *offers
	member  string
	results *prometheus.CounterVec

	// mu guards the following fields.
	mu sync.Mutex
	// open counts the offers, retry is when offers make sense again.
	open  int
	retry time.Time
}

// offer returns nil if the stream should carry the bytes. Only those to an API server are encrypted
// anyway. Call end afterwards.
func (d *dataPath) offer(target string) *offer {
	if d == nil || target != APIServer {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= maxOffers || time.Now().Before(d.retry) {
		return nil
	}
	d.open++
	return d.offers.add(d.member)
}

// The results of offers.
const (
	dataOpened   = "opened"
	dataDeclined = "declined"
	dataFailed   = "failed"
)

// end ends an offer.
func (d *dataPath) end(o *offer, result string) {
	d.offers.withdraw(o)
	d.results.WithLabelValues(d.member, result).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	if result == dataDeclined {
		d.retry = time.Now().Add(dataRetry)
	}
}

// dialData offers a data connection, and uses the stream if the agent does.
func (s *nativeSession) dialData(ctx context.Context, h header, d *dataPath, o *offer) (net.Conn, error) {
	result := dataFailed
	defer func() { d.end(o, result) }()
	h.nonce = o.nonce
	conn, err := s.dialHeader(ctx, h, func(ctx context.Context, stream net.Conn) (net.Conn, error) {
		tcp, err := o.claim(ctx)
		if err != nil {
			return nil, err
		}
		return newDataConn(tcp, stream), nil
	})
	if err != nil {
		return nil, err
	}
	result = dataDeclined
	if _, used := conn.(*dataConn); used {
		result = dataOpened
	}
	return conn, nil
}

// forwardedData is a stream whose bytes are on a data connection to another gateway.
type forwardedData struct{ net.Conn }

func (c forwardedData) CloseWrite() error  { return closeWrite(c.Conn) }
func (c forwardedData) Reset() error       { abandon(c.Conn); return nil }
func (c forwardedData) OnFailure(f func()) { onFailure(c.Conn, f) }

// acceptedAs is the response to another gateway whose dial has this result.
func acceptedAs(conn net.Conn) Code {
	if member, ok := conn.(*memberConn); ok {
		if _, ok := member.Conn.(forwardedData); ok {
			return codeOnData
		}
	}
	return codeOK
}

// relayedData makes the offers for streams of other gateways' sessions; nil if there are none.
func (r *Registry) relayedData(member string) *dataPath {
	if !r.options.DataConnections {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.relayed[member]
	if d == nil {
		d = &dataPath{offers: &r.offers, member: member, results: r.metrics.data}
		r.relayed[member] = d
	}
	return d
}

// serveData accepts a data connection of the member's agent. The nonce proves that the agent has a
// session, which was authenticated.
func (r *Registry) serveData(w http.ResponseWriter, req *http.Request, member string) {
	if refusal := refuseRequest(req, DataProtocol); refusal != nil {
		writeStatus(w, refusal)
		return
	}
	nonce, _ := hex.DecodeString(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
	o := r.offers.take(member, string(nonce))
	if o == nil {
		writeStatus(w, refusalOf(http.StatusMisdirectedRequest, metav1.StatusReasonUnauthorized, "this gateway has not offered a data connection with this nonce"))
		return
	}
	conn, err := hijack(w, DataProtocol)
	if err != nil {
		writeStatus(w, refusalOf(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
		return
	}
	tcp, err := belowTLS(conn)
	if err != nil {
		_ = conn.Close()
		return
	}
	o.deliver(tcp)
}

// belowTLS returns the TCP connection of a TLS connection that neither side uses any more. A peer that
// has sent more is not trusted: those bytes may have been read already.
func belowTLS(conn net.Conn) (*net.TCPConn, error) {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil, fmt.Errorf("a data connection on %T", conn)
	}
	below := secured.NetConn()
	for {
		switch c := below.(type) {
		case *net.TCPConn:
			return c, setKeepAlive(c)
		case *tls.Conn: // Of an HTTPS proxy, which stays in use.
			return nil, errors.New("a data connection in the TLS connection of a proxy")
		case interface{ NetConn() net.Conn }:
			below = c.NetConn()
		default:
			return nil, fmt.Errorf("a data connection on %T", below)
		}
	}
}
