// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubcertificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/util/certificate"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

const (
	// The agent checks with growing delays whether the hub issues certificates.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Keeper requests and renews the certificate. All fields are required.
type Keeper struct {
	// Member reaches the member, and Namespace is that of the agent there.
	Member    kubernetes.Interface
	Namespace string
	// Hub reaches the hub as the account of the agent.
	Hub kubernetes.Interface
	// Origin identifies the hub: the certificate of one hub is invalid on another.
	Origin string
	// Cluster is the member's name.
	Cluster string
}

// Run renews the certificate until ctx ends, once the hub allows the agent to request one. It logs
// what prevents that.
func (k *Keeper) Run(ctx context.Context) error {
	logged := ""
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		manager, err := k.manager(ctx)
		if err == nil {
			manager.Start() // stops with ctx
			<-ctx.Done()
			return nil
		}
		if ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			log.FromContext(ctx).V(1).Info("No certificate on the hub: " + logged)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// manager returns the certificate manager if the hub allows requests.
func (k *Keeper) manager(ctx context.Context) (certificate.Manager, error) {
	if err := k.mayRequest(ctx); err != nil {
		return nil, err
	}
	life := clusterv1.AgentCertificateLife
	return certificate.NewManager(&certificate.Config{
		Ctx:  &ctx,
		Name: "hub-certificate",
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) {
			return labellingClient{Interface: k.Hub, cluster: k.Cluster}, nil
		},
		Template: &x509.CertificateRequest{Subject: pkix.Name{
			CommonName:   clusterv1.UserPrefix + k.Cluster + ":" + clusterv1.AgentName,
			Organization: []string{clusterv1.UserPrefix + k.Cluster, clusterv1.AgentsGroup},
		}},
		SignerName:                   certificatesv1.KubeAPIServerClientSignerName,
		RequestedCertificateLifetime: &life,
		Usages:                       []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		CertificateStore:             &store{Keeper: k, ctx: ctx},
	})
}

// mayRequest returns nil if the hub allows the agent to request a certificate.
func (k *Keeper) mayRequest(ctx context.Context) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create"},
	}}
	reviewed, err := k.Hub.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("reviewing whether the agent may request a certificate: %w", err)
	}
	if !reviewed.Status.Allowed {
		return errors.New("the hub does not let the agent request a certificate: it does so with registration among the gateway's --ocm, once the member is admitted")
	}
	return nil
}

// labellingClient is a client that sets the name and label of a cluster on CertificateSigningRequests, by
// which the hub recognizes them.
type labellingClient struct {
	kubernetes.Interface
	cluster string
}

// CertificatesV1 implements kubernetes.Interface.
func (c labellingClient) CertificatesV1() certificatesv1client.CertificatesV1Interface {
	return labellingGroup{CertificatesV1Interface: c.Interface.CertificatesV1(), cluster: c.cluster}
}

type labellingGroup struct {
	certificatesv1client.CertificatesV1Interface
	cluster string
}

func (c labellingGroup) CertificateSigningRequests() certificatesv1client.CertificateSigningRequestInterface {
	return requests{CertificateSigningRequestInterface: c.CertificatesV1Interface.CertificateSigningRequests(), cluster: c.cluster}
}

type requests struct {
	certificatesv1client.CertificateSigningRequestInterface
	cluster string
}

func (r requests) Create(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, options metav1.CreateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	csr.GenerateName = r.cluster + "-"
	metav1.SetMetaDataLabel(&csr.ObjectMeta, clusterv1.ClusterNameLabel, r.cluster)
	return r.CertificateSigningRequestInterface.Create(ctx, csr, options)
}
