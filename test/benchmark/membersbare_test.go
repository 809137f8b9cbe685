// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// bare does the least that reconnects each member: it requests a token, shakes hands with a server
// that does nothing else, has the token reviewed, and lists the member's Works. Connections stay
// open until all have theirs.
func (m *membersBed) bare(b *testing.B) {
	b.Helper()
	secured, trusting := tunneltest.BenchmarkTLS()
	server := tunneltest.Serve(b, "127.0.0.1", func(c *net.TCPConn) {
		// The first read completes the handshake, and lasts until the peer closes.
		_, _ = tls.Server(c, secured).Read(make([]byte, 1))
	})
	name := fmt.Sprintf("bare-%d", m.joined)
	other := m.otherClient(b)
	began, used := time.Now(), m.cpuByProgram(b)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(concurrency)
	connections := make([]net.Conn, m.joined)
	for i := range connections {
		group.Go(func() error {
			namespace := clusterv1beta1.MemberNamespace(registrationv1alpha1.ClusterName(simulatedName(i + 1)))
			var err error
			connections[i], err = m.reconnectBare(ctx, namespace, server, trusting)
			return err
		})
	}
	err := group.Wait()
	m.reconnectTime = time.Since(began)
	took := other()
	for _, connection := range connections {
		if connection != nil {
			err = errors.Join(err, connection.Close())
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	m.logCPU(b, name, used)
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(m.reconnectTime.Seconds(), "s-until-all")
		took.report(b)
	})
}

// reconnectBare does it for one member.
func (m *membersBed) reconnectBare(ctx context.Context, namespace, server string, trusting *tls.Config) (net.Conn, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterv1beta1.AgentAccount}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{tunnelv1alpha1.TokenAudience}}}
	if err := m.hub.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, err
	}
	connection, err := (&tls.Dialer{Config: trusting}).DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token, Audiences: token.Spec.Audiences}}
	works := metadataOf(placementv1beta1.GroupVersion.WithKind("WorkList"))
	if err := errors.Join(m.hub.Create(ctx, review), m.hub.List(ctx, works, client.InNamespace(namespace))); err != nil {
		return connection, err
	}
	if !review.Status.Authenticated || len(works.Items) < worksOfMember {
		return connection, fmt.Errorf("%s: its token is good: %v; it has %d Works", namespace, review.Status.Authenticated, len(works.Items))
	}
	return connection, nil
}
