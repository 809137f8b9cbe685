// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
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

// bare has the benchmark do for each member the least that brings a tunnel back: a token is made,
// somebody shakes hands with a server that does nothing else, the token is reviewed, and the
// member's Works are listed. The connections stay until all have theirs.
func (m *membersBed) bare(b *testing.B) {
	b.Helper()
	secured, trusting := tunneltest.BenchmarkTLS()
	server := newHandshakes(b, secured)
	defer server.close()
	name := fmt.Sprintf("bare-%d", m.joined)
	other := m.somebodyElse(b)
	began, used := time.Now(), m.cpuByProgram(b)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(concurrency)
	connections := make([]net.Conn, m.joined)
	for i := range connections {
		group.Go(func() error {
			namespace := clusterv1beta1.MemberNamespace(registrationv1alpha1.ClusterName(simulatedName(i + 1)))
			var err error
			connections[i], err = m.comeBackBare(ctx, namespace, server.address(), trusting)
			return err
		})
	}
	err := group.Wait()
	m.comeBack = time.Since(began)
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
		b.ReportMetric(m.comeBack.Seconds(), "s-until-all")
		took.report(b)
	})
}

// comeBackBare is that of one member.
func (m *membersBed) comeBackBare(ctx context.Context, namespace, server string, trusting *tls.Config) (net.Conn, error) {
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
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
	if err := errors.Join(m.hub.Create(ctx, review), m.hub.List(ctx, works, client.InNamespace(namespace))); err != nil {
		return connection, err
	}
	if !review.Status.Authenticated || len(works.Items) < worksOfMember {
		return connection, fmt.Errorf("%s: its token is good: %v; it has %d Works", namespace, review.Status.Authenticated, len(works.Items))
	}
	return connection, nil
}

// handshakes is a server that shakes hands with everybody, and keeps the connections until they end.
type handshakes struct {
	listener net.Listener
	serving  sync.WaitGroup
}

func newHandshakes(b *testing.B, secured *tls.Config) *handshakes {
	b.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", secured)
	if err != nil {
		b.Fatal(err)
	}
	h := &handshakes{listener: listener}
	h.serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // It was closed.
			}
			h.serving.Go(func() {
				defer connection.Close()
				// The first read shakes hands, and lasts until the other side closes.
				_, _ = connection.Read(make([]byte, 1))
			})
		}
	})
	return h
}

func (h *handshakes) address() string { return h.listener.Addr().String() }

// close waits for those who have a connection to close it.
func (h *handshakes) close() {
	_ = h.listener.Close()
	h.serving.Wait()
}
