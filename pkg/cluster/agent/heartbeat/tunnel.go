// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

const (
	// tunnelSettles is how long a change of the tunnel has to last until it is reported
	// before its turn: one that only moves, or comes and goes, is not worth a write.
	tunnelSettles = 5 * time.Second
	// maxTunnelReason bounds why there is no tunnel, in bytes.
	maxTunnelReason = 512
)

// Tunnel is what there is to report about the agent's tunnel. Set it as the tunnel
// changes, from any goroutine.
type Tunnel struct {
	clock   clock.WithDelayedExecution
	changed wakes

	// mu guards the fields below it.
	mu sync.Mutex
	// shown is nil until something is known.
	shown *metav1.Condition
	// byNamespace is set once a tunnel was opened by the right in the member's namespace.
	byNamespace bool
	timer       clock.Timer
}

// NewTunnel returns one of which nothing is known yet.
func NewTunnel(clock clock.WithDelayedExecution) *Tunnel {
	return &Tunnel{clock: clock, changed: make(wakes, 1)}
}

// Up says that the tunnel is there; reason is one of clusterv1beta1.ReasonTunnel* and
// says which way it goes.
func (t *Tunnel) Up(reason string) {
	t.set(metav1.Condition{Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionTrue, Reason: reason, Message: tunnelWays()[reason]})
}

// Down says why there is none. Texts that change from one attempt to the next wait for
// the next heartbeat.
func (t *Tunnel) Down(err error) {
	message := "the agent has no tunnel"
	if err != nil {
		message += ": " + err.Error()
	}
	if len(message) > maxTunnelReason {
		message = strings.ToValidUTF8(message[:maxTunnelReason], "")
	}
	t.set(metav1.Condition{
		Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionFalse,
		Reason: clusterv1beta1.ReasonTunnelDown, Message: message,
	})
}

// Forget is for one that is not kept up any more: nothing is known of the next.
func (t *Tunnel) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown, t.byNamespace = nil, false
	if t.timer != nil {
		t.timer.Stop()
	}
}

func tunnelWays() map[string]string {
	return map[string]string{
		clusterv1beta1.ReasonTunnelViaHub:          "the tunnel goes through the hub's API server",
		clusterv1beta1.ReasonTunnelViaPort:         "the tunnel goes straight to the gateway's own port",
		clusterv1beta1.ReasonTunnelViaKonnectivity: "the tunnel speaks Konnectivity's protocol, straight to its server",
	}
}

func (t *Tunnel) set(condition metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.shown
	t.shown = &condition
	if before != nil && before.Reason == condition.Reason {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = t.clock.AfterFunc(tunnelSettles, t.changed.wake)
}

// ByNamespace says that a tunnel was opened by the right in the member's namespace on the
// hub, and that no other is needed.
func (t *Tunnel) ByNamespace() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byNamespace = true
}

// right is by which right the tunnel is opened; empty without a tunnel.
func (t *Tunnel) right() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byNamespace {
		return clusterv1beta1.TunnelRightNamespace
	}
	return clusterv1beta1.TunnelRightEither
}

// condition is what to report, or nil.
func (t *Tunnel) condition() *metav1.Condition {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.DeepCopy()
}
