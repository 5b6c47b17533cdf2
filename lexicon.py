"""Words of the embedded corpus, English and French side by side, and how they inflect."""

from __future__ import annotations

import re
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `en` is its lemma id."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    gender: str
    kind: str


class Adjective(NamedTuple):
    """An adjective in both languages; `fr` holds m, f, m plural, f plural, m before a vowel."""

    en: str
    fr: tuple[str, str, str, str, str]
    is_before_noun: bool
    kinds: tuple[str, ...]

    def form(self, gender: str, is_plural: bool) -> str:
        """The French form that agrees with a noun, not minding a vowel that follows."""
        return self.fr[2 * is_plural + (gender == "f")]


class Verb(NamedTuple):
    """A verb in both languages and what it takes.

    The French finite forms stand in the order je, tu, il, nous, vous, ils.
    """

    en: str
    en_s: str
    en_past: str
    en_participle: str
    en_ing: str
    particle: str
    fr: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    takes_etre: bool
    is_reflexive: bool
    preposition: str
    complement: tuple[str, ...]
    adjunct: str
    topic: str


# kind: French:gender:English, each with "/plural" where the rule does not give it.
_NOUNS = """
family: mère:f:mother, père:m:father, frère:m:brother, sœur:f:sister, fils/fils:m:son, fille:f:daughter
family: oncle:m:uncle, tante:f:aunt, cousin:m:cousin, femme:f:wife/wives, neveu:m:nephew
family: nièce:f:niece, grand-père/grands-pères:m:grandfather, grand-mère/grands-mères:f:grandmother
family: voisin:m:neighbour, ami:m:friend, collègue:m:colleague
worker: médecin:m:doctor, infirmière:f:nurse, professeur:m:teacher, étudiant:m:student, avocat:m:lawyer
worker: boulanger:m:baker, vendeur:m:salesman/salesmen, vendeuse:f:saleswoman/saleswomen, serveur:m:waiter
worker: serveuse:f:waitress, facteur:m:postman/postmen, ingénieur:m:engineer, dentiste:m:dentist
worker: policier:m:policeman/policemen, journaliste:m:journalist, chanteuse:f:singer, acteur:m:actor
worker: actrice:f:actress, directrice:f:headmistress, directeur:m:headmaster, pilote:m:pilot,
    agriculteur:m:farmer
worker: mécanicien:m:mechanic, coiffeuse:f:hairdresser, pharmacien:m:pharmacist, secrétaire:f:secretary
worker: chauffeur:m:driver, musicien:m:musician, architecte:m:architect, danseuse:f:dancer, boucher:m:butcher
someone: client:m:customer, touriste:m:tourist, garçon:m:boy, dame:f:lady, homme:m:man/men, élève:m:pupil
someone: invité:m:guest, voyageur:m:traveller
hot_drink: café:m:coffee, thé:m:tea, chocolat chaud:m:hot chocolate, tisane:f:herbal tea
cold_drink: eau:f:water, lait:m:milk, jus d'orange:m:orange juice, bière:f:beer, limonade:f:lemonade
cold_drink: cidre:m:cider, jus de pomme:m:apple juice, eau minérale:f:mineral water, vin:m:wine
food: poisson:m:fish, poulet:m:chicken, viande:f:meat, riz:m:rice, soupe:f:soup, bœuf:m:beef, veau:m:veal
food: porc:m:pork, saumon:m:salmon, agneau:m:lamb, thon:m:tuna, purée:f:mashed potato
snack_food: pain:m:bread, fromage:m:cheese, glace:f:ice cream, chocolat:m:chocolate, miel:m:honey
snack_food: confiture:f:jam, crème:f:cream, beurre:m:butter, salade:f:salad, jambon:m:ham
seasoning: sel:m:salt, huile:f:oil, poivre:m:pepper, vinaigre:m:vinegar, moutarde:f:mustard, ail:m:garlic
staple: sucre:m:sugar, farine:f:flour, savon:m:soap, papier:m:paper
fruit: pomme:f:apple, poire:f:pear, banane:f:banana, orange:f:orange, fraise:f:strawberry, cerise:f:cherry
fruit: pêche:f:peach, melon:m:melon, ananas:m:pineapple, abricot:m:apricot, framboise:f:raspberry
fruit: prune:f:plum, tomate:f:tomato/tomatoes, figue:f:fig
vegetable: carotte:f:carrot, oignon:m:onion, champignon:m:mushroom, concombre:m:cucumber, haricot:m:bean
vegetable: pomme de terre/pommes de terre:f:potato/potatoes, aubergine:f:aubergine, artichaut:m:artichoke
cake: gâteau:m:cake, tarte:f:tart, pizza:f:pizza, quiche:f:quiche
snack: croissant:m:croissant, sandwich:m:sandwich, beignet:m:doughnut
snack: biscuit:m:biscuit, crêpe:f:pancake, omelette:f:omelette, yaourt:m:yoghurt, hamburger:m:hamburger
clothes: chemise:f:shirt, robe:f:dress, jupe:f:skirt, manteau:m:coat, chapeau:m:hat, veste:f:jacket
clothes: pull:m:sweater, cravate:f:tie, écharpe:f:scarf/scarves, ceinture:f:belt, casquette:f:cap
clothes: imperméable:m:raincoat, uniforme:m:uniform, costume:m:suit
pair: chaussure:f:shoe, chaussette:f:sock, botte:f:boot, gant:m:glove, sandale:f:sandal, pantoufle:f:slipper
book: livre:m:book, journal:m:newspaper, magazine:m:magazine, dictionnaire:m:dictionary
writing: roman:m:novel, poème:m:poem, conte:m:tale, article:m:article
mail: lettre:f:letter, message:m:message, courriel:m:email
card: carte postale/cartes postales:f:postcard, invitation:f:invitation
stationery: stylo:m:pen, crayon:m:pencil, cahier:m:notebook, gomme:f:rubber, règle:f:ruler
stationery: enveloppe:f:envelope, feutre:m:felt-tip pen
belonging: clé:f:key, téléphone:m:phone, sac:m:bag, valise:f:suitcase, parapluie:m:umbrella,
    passeport:m:passport
belonging: portefeuille:m:wallet, montre:f:watch, bague:f:ring, appareil photo/appareils photo:m:camera
belonging: sac à dos/sacs à dos:m:backpack, collier:m:necklace, serviette:f:towel, briquet:m:lighter
machine: ordinateur:m:computer, radio:f:radio, télévision:f:television, lampe:f:lamp, réfrigérateur:m:fridge
machine: four:m:oven, machine à laver/machines à laver:f:washing machine, imprimante:f:printer
machine: aspirateur:m:vacuum cleaner, horloge:f:clock, réveil:m:alarm clock
furniture: table:f:table, chaise:f:chair, lit:m:bed, armoire:f:wardrobe, canapé:m:sofa, fauteuil:m:armchair
furniture: bureau:m:desk, étagère:f:shelf/shelves, commode:f:chest of drawers/chests of drawers
textile: tapis:m:carpet, rideau:m:curtain, couverture:f:blanket, coussin:m:cushion, nappe:f:tablecloth
dish: assiette:f:plate, verre:m:glass, tasse:f:cup, bouteille:f:bottle, bol:m:bowl, casserole:f:saucepan
dish: poêle:f:frying pan, théière:f:teapot, vase:m:vase
cutlery: couteau:m:knife/knives, fourchette:f:fork, cuillère:f:spoon
opening: porte:f:door, fenêtre:f:window, tiroir:m:drawer, portail:m:gate
vehicle: voiture:f:car, vélo:m:bike, moto:f:motorbike, camion:m:lorry, bateau:m:boat
ride: train:m:train, bus:m:bus, avion:m:plane, taxi:m:taxi, métro:m:underground, tramway:m:tram
pet: chien:m:dog, chat:m:cat, oiseau:m:bird, lapin:m:rabbit, tortue:f:tortoise, perroquet:m:parrot
pet: hamster:m:hamster, cochon d'Inde/cochons d'Inde:m:guinea pig
farm: cheval:m:horse, vache:f:cow, canard:m:duck, poule:f:hen, chèvre:f:goat, âne:m:donkey, cochon:m:pig
farm: oie:f:goose/geese
place: gare:f:station, banque:f:bank, bibliothèque:f:library, musée:m:museum, hôpital:m:hospital
place: pharmacie:f:pharmacy, boulangerie:f:bakery, marché:m:market, supermarché:m:supermarket
place: restaurant:m:restaurant, hôtel:m:hotel, cinéma:m:cinema, théâtre:m:theatre, poste:f:post office
place: mairie:f:town hall, piscine:f:swimming pool, université:f:university, librairie:f:bookshop
place: boucherie:f:butcher's shop, école:f:school, zoo:m:zoo, boutique:f:boutique
sight: château:m:castle, église:f:church, tour:f:tower, pont:m:bridge, cathédrale:f:cathedral, palais:m:palace
room: cuisine:f:kitchen, salon:m:living room, chambre:f:bedroom, garage:m:garage, salle à manger/salles à
    manger:f:dining room
room: salle de bains/salles de bains:f:bathroom, cave:f:cellar, grenier:m:attic, entrée:f:hall
building: maison:f:house, appartement:m:flat, studio:m:studio flat, chalet:m:chalet
area: village:m:village, ville:f:town, quartier:m:neighbourhood, rue:f:street, île:f:island
flower: fleur:f:flower, rose:f:rose, tulipe:f:tulip, orchidée:f:orchid
plant: arbre:m:tree, plante:f:plant, buisson:m:bush
subject: histoire:f:history, géographie:f:geography, musique:f:music, biologie:f:biology, physique:f:physics
subject: chimie:f:chemistry, littérature:f:literature, philosophie:f:philosophy, droit:m:law
subject: informatique:f:computer science
lesson: leçon:f:lesson, exercice:m:exercise, cours:m:class
query: question:f:question, phrase:f:sentence, mot:m:word
task: problème:m:problem, texte:m:text, règle:f:rule
paper: rapport:m:report, contrat:m:contract, dossier:m:file, document:m:document, facture:f:invoice
event: réunion:f:meeting, fête:f:party, voyage:m:trip, conférence:f:conference, exposition:f:exhibition
show: film:m:film, match/matchs:m:match, spectacle:m:show, concert:m:concert, émission:f:programme
art: tableau:m:painting, photo:f:photo, dessin:m:drawing, statue:f:statue
body: tête:f:head, dos:m:back, ventre:m:stomach, gorge:f:throat, genou/genoux:m:knee, oreille:f:ear
body: main:f:hand, épaule:f:shoulder, jambe:f:leg, bras:m:arm, pied:m:foot/feet, cou:m:neck, nez:m:nose
body: doigt:m:finger, cheville:f:ankle, hanche:f:hip, poignet:m:wrist
remedy: médicament:m:medicine, comprimé:m:tablet, sirop:m:syrup
toy: ballon:m:ball, jouet:m:toy, cadeau:m:present, poupée:f:doll, cerf-volant/cerfs-volants:m:kite
"""

# French m[/f[/m plural[/f plural]]]:English:b(efore) or a(fter) the noun:kinds it may describe.
_ADJECTIVES = """
petit:small:b:plant belonging machine furniture dish cutlery opening vehicle pet farm place room building
    area flower toy textile
gros/grosse:fat:b:pet farm
grand:big:b:plant machine furniture dish cutlery opening vehicle room building place textile
beau/belle/beaux/belles/bel:beautiful:b:plant clothes belonging furniture pet farm building area flower
    art sight textile
nouveau/nouvelle/nouveaux/nouvelles/nouvel:new:b:clothes pair book writing belonging machine furniture
    vehicle paper toy place
vieux/vieille/vieux/vieilles/vieil:old:b:clothes pair book writing belonging machine furniture vehicle
    building sight
joli:pretty:b:clothes pair flower art room building dish cutlery area textile toy
bon/bonne:good:b:food snack_food snack cake fruit hot_drink cold_drink book writing show
mauvais:bad:b:food snack cake hot_drink cold_drink book writing show
excellent:excellent:b:food snack cake book writing show hot_drink event
rouge:red:a:clothes pair belonging furniture dish vehicle flower stationery opening textile toy
bleu:blue:a:clothes pair belonging furniture dish vehicle stationery opening textile toy
vert:green:a:clothes pair belonging furniture dish vehicle stationery opening textile toy
noir:black:a:clothes pair belonging furniture vehicle pet farm stationery machine
blanc/blanche:white:a:clothes pair furniture dish vehicle pet farm flower machine opening building textile
gris:grey:a:clothes pair belonging furniture vehicle pet farm building textile
jaune:yellow:a:clothes pair belonging furniture vehicle flower dish stationery textile
violet/violette:purple:a:clothes pair flower stationery textile
rose:pink:a:clothes pair flower stationery textile
brun:brown:a:pet farm furniture
cher/chère:expensive:a:clothes pair belonging machine furniture vehicle building textile
propre:clean:a:clothes pair dish cutlery room vehicle textile
sale:dirty:a:clothes pair dish cutlery room vehicle textile
lourd:heavy:a:furniture machine
léger/légère:light:a:clothes pair
élégant:elegant:a:clothes pair
chaud:warm:a:pair
confortable:comfortable:a:pair furniture vehicle room building
pratique:practical:a:belonging machine vehicle
solide:solid:a:furniture machine vehicle
cassé:broken:a:machine dish furniture
vide:empty:a:dish room building
moderne:modern:a:machine furniture building place
calme:quiet:a:room building area place
tranquille:peaceful:a:area
ancien/ancienne:ancient:a:sight
magnifique:magnificent:a:sight art
célèbre:famous:a:art sight
intéressant:interesting:a:task query book writing show lesson subject art paper event
ennuyeux/ennuyeuse:boring:a:book writing show lesson paper event
utile:useful:a:book lesson machine subject
facile:easy:a:lesson query task subject
difficile:difficult:a:lesson query task subject
important:important:a:task query paper mail event lesson
urgent:urgent:a:paper mail
secret/secrète:secret:a:paper mail
long/longue:long:b:mail writing show event
court:short:a:mail writing
amusant:amusing:a:writing show art toy
triste:sad:a:writing mail person
délicieux/délicieuse:delicious:a:food snack_food snack cake fruit hot_drink
frais/fraîche:fresh:a:fruit vegetable
chaud:hot:a:food hot_drink
froid:cold:a:food hot_drink cold_drink
sucré:sweet:a:fruit
salé:salty:a:food
mûr:ripe:a:fruit
fatigué:tired:a:person
malade:ill:a:person
heureux/heureuse:happy:a:person
inquiet/inquiète:worried:a:person
prêt:ready:a:person
occupé:busy:a:person
seul:alone:a:person
fâché:angry:a:person
nerveux/nerveuse:nervous:a:person
absent:absent:a:person
pressé:in a hurry:a:person
déçu:disappointed:a:person
gentil/gentille:kind:a:character
intelligent:intelligent:a:character
timide:shy:a:character
drôle:funny:a:character
paresseux/paresseuse:lazy:a:character
sérieux/sérieuse:serious:a:character
patient:patient:a:character
curieux/curieuse:curious:a:character
poli:polite:a:character
courageux/courageuse:brave:a:character
généreux/généreuse:generous:a:character
sympathique:nice:a:character
"""

# English (past and participle if irregular) [+ particle]|French [preposition]|what it takes|adjunct|topic
_VERBS = """
eat/ate/eaten|manger|food snack_food fruit vegetable snack cake|room|restaurant
drink/drank/drunk|boire|hot_drink cold_drink|room|restaurant
order|commander|food cold_drink snack cake|restaurant|restaurant
cook|cuisiner|food vegetable|.|restaurant
taste|goûter|the:food the:snack_food the:cake|.|restaurant
prepare|préparer|food snack cake hot_drink the:event|.|restaurant
serve|servir|food snack hot_drink cold_drink|restaurant|restaurant
cut/cut/cut|couper|the:vegetable the:cake|.|restaurant
buy/bought/bought|acheter|food snack_food fruit vegetable snack staple seasoning cold_drink stationery
    flower cake|shop|shops
buy/bought/bought|acheter|clothes pair book belonging machine furniture vehicle toy textile plant card|.|shops
sell/sold/sold|vendre|clothes pair fruit vegetable book flower snack_food|market|shops
sell/sold/sold|vendre|building furniture vehicle machine farm|.|shops
pay for/paid/paid|payer|the:clothes the:belonging the:furniture the:machine|.|shops
choose/chose/chosen|choisir|clothes pair belonging furniture book toy textile|shop|shops
wear/wore/worn|porter|clothes pair|.|shops
try on/tried/tried|essayer|clothes pair|shop|shops
look for|chercher|clothes pair belonging book stationery the:place toy|.|home
find/found/found|trouver|the:clothes the:pair the:belonging the:book the:stationery|.|home
lose/lost/lost|perdre|the:belonging the:stationery|park|travel
forget/forgot/forgotten|oublier|the:belonging the:stationery the:clothes|.|travel
take/took/taken|prendre|the:ride remedy|.|travel
miss|rater|the:ride|.|travel
visit|visiter|the:sight area country|.|travel
go/went/gone|aller*|to:place to:city to:country|with|travel
come back/came/come|revenir*|from:city|with|travel
stay|rester*|in:city home|with|travel
arrive|arriver*|at:place in:city|with|travel
leave for/left/left|partir* pour|land city|with|travel
work|travailler|at:place in:city|with|work
write/wrote/written|écrire|writing mail card|room|school
read/read/read|lire|book writing mail paper|room|school
finish|finir|the:book the:writing the:lesson the:paper|.|school
begin/began/begun|commencer|the:lesson the:writing the:paper|.|school
study|étudier|gen:subject|library|school
learn|apprendre|gen:language|with|school
teach/taught/taught|enseigner|gen:subject gen:language|.|school
understand/understood/understood|comprendre|the:lesson the:query the:task the:mail gen:language|.|school
explain|expliquer|the:lesson the:query the:task the:paper|.|school
repeat|répéter|the:query|.|school
correct|corriger|the:lesson the:writing|.|school
speak/spoke/spoken|parler|language|with|school
sign|signer|the:paper|office|work
send/sent/sent|envoyer|mail paper toy card|.|work
receive|recevoir|mail toy paper card|.|work
print|imprimer|the:paper the:mail the:writing|office|work
organise|organiser|event|.|work
translate|traduire|the:mail the:paper the:writing|.|work
call|appeler|person|.|family
help|aider|person|.|family
see/saw/seen|voir|person pet show|.|family
invite|inviter|person|.|family
wait for|attendre|person the:ride|.|travel
meet/met/met|rencontrer|person|town|family
thank|remercier|person|.|greetings
greet|saluer|person|.|greetings
listen to|écouter|person radio|.|family
visit|rendre visite à|person|.|family
talk to|parler à|person|.|greetings
answer|répondre à|person|.|greetings
telephone|téléphoner à|person|.|family
watch|regarder|show television|home|home
play|jouer à|game|park|family
play|jouer de|instrument|.|family
clean|nettoyer|the:room the:textile the:vehicle|.|home
wash|laver|the:clothes the:dish the:cutlery the:vehicle the:textile|.|home
dry|sécher|the:clothes the:dish the:cutlery|.|home
repair|réparer|the:machine the:vehicle the:furniture|garage|home
open|ouvrir|the:opening the:mail|.|home
close|fermer|the:opening|.|home
use|utiliser|the:machine the:dish the:cutlery the:stationery|.|home
break/broke/broken|casser|the:dish the:machine toy|.|home
paint|peindre|the:opening the:room flower pet|.|home
draw/drew/drawn|dessiner|flower pet farm sight|.|school
photograph|photographier|sight pet farm flower|.|travel
sing/sang/sung|chanter|song|home|family
sleep/slept/slept|dormir|.|bed|health
swim/swam/swum|nager|.|pool|health
run/ran/run|courir|.|park|health
walk|marcher|.|park|health
dance|danser|.|home|family
travel/travelled/travelled|voyager|.|by|travel
rest|se reposer|.|bed|health
get up/got/got|se lever|.|morning|time
wake up/woke/woken|se réveiller|.|morning|time
go to bed/went/gone|se coucher|.|night|time
get dressed/got/got|s'habiller|.|bed|home
hurry|se dépêcher|.|.|time
go for a walk/went/gone|se promener|.|with|health
look after|s'occuper de|person the:pet the:farm|.|health
go out/went/gone|sortir*|.|with|time
enter|entrer* dans|the:place the:room|.|directions
cross|traverser|crossing|.|directions
follow|suivre|person|.|directions
borrow|emprunter|belonging book vehicle|.|home
lend/lent/lent|prêter|the:belonging the:book the:vehicle the:stationery the:clothes|.|giving
give/gave/given|donner|toy flower book belonging fruit cake snack_food hot_drink|.|giving
show/showed/shown|montrer|the:art the:writing the:toy the:belonging the:machine the:paper|.|giving
bring/brought/brought|apporter|hot_drink cold_drink cake flower the:mail the:paper toy|.|giving
leave/left/left|laisser|the:mail the:belonging the:paper|.|giving
carry|transporter|the:furniture the:machine|.|home
move|déplacer|the:furniture the:textile|.|home
hide/hid/hidden|cacher|the:belonging the:mail toy|.|home
admire|admirer|the:art the:sight the:flower|.|travel
rent|louer|vehicle building|town|travel
feed/fed/fed|nourrir|the:pet the:farm|.|home
water|arroser|the:flower the:plant|.|home
like|aimer|gen:food gen:snack_food gen:hot_drink gen:fruit gen:vegetable gen:pet gen:farm
    gen:subject|!|restaurant
hate|détester|gen:food gen:snack_food gen:hot_drink gen:fruit gen:vegetable gen:subject|!|restaurant
know/knew/known|connaître|person the:area city|!|greetings
have/had/had|avoir|pet farm vehicle belonging machine|!|home
prefer/preferred/preferred|préférer|gen:food gen:hot_drink gen:fruit gen:subject|!|restaurant
"""

# infinitive: present; past participle; future stem; (the imperfect follows "nous")
_IRREGULAR = """
être: suis es est sommes êtes sont; été; ser; ét
avoir: ai as a avons avez ont; eu; aur
aller: vais vas va allons allez vont; allé; ir
faire: fais fais fait faisons faites font; fait; fer
pouvoir: peux peux peut pouvons pouvez peuvent; pu; pourr
vouloir: veux veux veut voulons voulez veulent; voulu; voudr
devoir: dois dois doit devons devez doivent; dû; devr
boire: bois bois boit buvons buvez boivent; bu; boir
prendre: prends prends prend prenons prenez prennent; pris; prendr
apprendre: apprends apprends apprend apprenons apprenez apprennent; appris; apprendr
comprendre: comprends comprends comprend comprenons comprenez comprennent; compris; comprendr
venir: viens viens vient venons venez viennent; venu; viendr
revenir: reviens reviens revient revenons revenez reviennent; revenu; reviendr
partir: pars pars part partons partez partent; parti; partir
sortir: sors sors sort sortons sortez sortent; sorti; sortir
dormir: dors dors dort dormons dormez dorment; dormi; dormir
courir: cours cours court courons courez courent; couru; courr
écrire: écris écris écrit écrivons écrivez écrivent; écrit; écrir
lire: lis lis lit lisons lisez lisent; lu; lir
suivre: suis suis suit suivons suivez suivent; suivi; suivr
recevoir: reçois reçois reçoit recevons recevez reçoivent; reçu; recevr
envoyer: envoie envoies envoie envoyons envoyez envoient; envoyé; enverr
voir: vois vois voit voyons voyez voient; vu; verr
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent; ouvert; ouvrir
peindre: peins peins peint peignons peignez peignent; peint; peindr
connaître: connais connais connaît connaissons connaissez connaissent; connu; connaîtr
savoir: sais sais sait savons savez savent; su; saur
promettre: promets promets promet promettons promettez promettent; promis; promettr
servir: sers sers sert servons servez servent; servi; servir
traduire: traduis traduis traduit traduisons traduisez traduisent; traduit; traduir
appeler: appelle appelles appelle appelons appelez appellent; appelé; appeller
"""

# English|French with its preposition; what "to", "in" or "at" becomes depends on the country.
COUNTRIES = """France|en France; Germany|en Allemagne; Spain|en Espagne; Italy|en Italie
England|en Angleterre
Belgium|en Belgique; Switzerland|en Suisse; Canada|au Canada; Portugal|au Portugal; Japan|au Japon
China|en Chine; Brazil|au Brésil; Ireland|en Irlande; Greece|en Grèce; Norway|en Norvège; Morocco|au Maroc"""
CITIES = """Paris|Paris; London|Londres; Lyon|Lyon; Marseille|Marseille; Bordeaux|Bordeaux; Lille|Lille
Toulouse|Toulouse; Strasbourg|Strasbourg; Geneva|Genève; Brussels|Bruxelles; Berlin|Berlin; Rome|Rome
Madrid|Madrid; Lisbon|Lisbonne; Montreal|Montréal; Vienna|Vienne; Athens|Athènes; Moscow|Moscou"""
LANGUAGE_NAMES = """French|français; English|anglais; German|allemand; Spanish|espagnol; Italian|italien
Russian|russe; Japanese|japonais; Chinese|chinois; Portuguese|portugais; Arabic|arabe"""
GAMES = "football|le football; tennis|le tennis; cards|les cartes; chess|les échecs; basketball|le basket"
INSTRUMENTS = """the piano|le piano; the guitar|la guitare; the violin|le violon; the flute|la flûte
the drums|la batterie"""
DAYS = """Monday|lundi; Tuesday|mardi; Wednesday|mercredi; Thursday|jeudi; Friday|vendredi
Saturday|samedi; Sunday|dimanche"""
MONTHS = """January|janvier; February|février; March|mars; April|avril; May|mai; June|juin; July|juillet
August|août; September|septembre; October|octobre; November|novembre; December|décembre"""
SEASONS = "in spring|au printemps; in summer|en été; in autumn|en automne; in winter|en hiver"

# Words before which French neither elides nor links.
ASPIRATED = (
    "haricot",
    "hamburger",
    "hamster",
    "huit",
    "hanche",
    "harpe",
    "héros",
    "haut",
    "onze",
    "yaourt",
    "hambourg",
    "onzième",
)


def table_lines(table: str) -> list[str]:
    """The lines of a table; an indented line goes on with the one above."""
    return table.strip().replace("\n    ", " ").splitlines()


def french_plural(noun: str) -> str:
    """Regular plural of a French noun or masculine adjective."""
    if noun[-1] in "sxz":
        return noun
    if noun.endswith(("au", "eu")) and noun != "bleu":
        return noun + "x"
    return noun[:-2] + "aux" if noun.endswith("al") else noun + "s"


def english_plural(noun: str) -> str:
    """Regular plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeou" else noun + "s"


def parse_pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Split "English|French; …" into pairs."""
    entries = table.replace("\n", ";").split(";")
    return tuple((en, fr) for en, fr in (entry.strip().split("|") for entry in entries))


def _parse_noun(entry: str, kind: str) -> Noun:
    fr, gender, en = entry.strip().split(":")
    fr, _, fr_plural = fr.partition("/")
    en, _, en_plural = en.partition("/")
    return Noun(en, en_plural or english_plural(en), fr, fr_plural or french_plural(fr), gender, kind)


def _parse_adjective(line: str) -> Adjective:
    fr, en, position, kinds = line.split(":")
    forms = fr.split("/")
    masculine = forms[0]
    feminine = forms[1] if len(forms) > 1 else masculine if masculine.endswith("e") else masculine + "e"
    masculine_plural = forms[2] if len(forms) > 2 else french_plural(masculine)
    before_vowel = forms[4] if len(forms) > 4 else masculine
    return Adjective(
        en,
        (masculine, feminine, masculine_plural, feminine + "s", before_vowel),
        position == "b",
        tuple(kinds.split()),
    )


def _regular_french(infinitive: str) -> tuple[list[str], str, str]:
    """Present, participle and future stem of a regular French verb."""
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "ir":
        return [stem + e for e in ("is", "is", "it", "issons", "issez", "issent")], stem + "i", infinitive
    if ending == "re":
        return [stem + e for e in ("s", "s", "", "ons", "ez", "ent")], stem + "u", infinitive[:-1]
    strong, future = stem, infinitive
    if stem.endswith("oy") or stem.endswith(("ay", "uy")):
        strong = stem[:-1] + "i"
        future = strong + "er"
    elif match := re.search(r"([eé])(ch|[vtrnlm])$", stem):
        strong = f"{stem[: match.start()]}è{match[2]}"
        future = strong + "er" if match[1] == "e" else infinitive
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    present = [strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent"]
    return present, stem + "é", future


def french_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Present, imperfect, future (six forms each) and past participle of a French verb."""
    stem = ""
    for line in table_lines(_IRREGULAR):
        name, _, parts = line.partition(": ")
        if name == infinitive:
            forms, participle, future, *rest = (part.strip() for part in parts.split(";"))
            present = forms.split()
            stem = rest[0] if rest else ""
            break
    else:
        present, participle, future = _regular_french(infinitive)
    stem = stem or present[3][:-3]
    # "mangeons" keeps its e before a, "mangions" drops it; "ç" likewise.
    soft = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem.endswith("ç") else stem
    imperfect = [stem + "ais", stem + "ais", stem + "ait", soft + "ions", soft + "iez", stem + "aient"]
    futures = tuple(future + e for e in ("ai", "as", "a", "ons", "ez", "ont"))
    return tuple(present), tuple(imperfect), futures, participle


def _english_forms(base: str) -> tuple[str, str, str]:
    """Third person, regular past and -ing form of an English verb."""
    vowel = "aeiou"
    doubled = base in ("get", "begin", "forget", "prefer", "swim", "run", "cut", "travel")
    stem = base + base[-1] if doubled else base
    if base.endswith("y") and base[-2] not in vowel:
        return base[:-1] + "ies", base[:-1] + "ied", base + "ing"
    third = {"have": "has", "go": "goes", "do": "does"}.get(base)
    third = third or base + ("es" if base.endswith(("s", "x", "ch", "sh")) else "s")
    if base.endswith("e") and base != "see":
        return third, base + "d", base[:-1] + "ing"
    return third, stem + "ed", stem + "ing"


def _parse_verb(line: str) -> Verb:
    english, french, complement, adjunct, topic = line.split("|")
    phrase, *irregular = english.split("/")
    base, _, particle = phrase.partition(" ")
    third, past, ing = _english_forms(base)
    past, participle = irregular if irregular else (past, past)
    infinitive, _, preposition = french.partition(" ")
    is_reflexive = infinitive.startswith(("s'",)) or infinitive == "se"
    if infinitive == "se":
        infinitive, preposition = preposition, ""
    infinitive = infinitive.removeprefix("s'")
    takes_etre = infinitive.endswith("*") or is_reflexive
    infinitive = infinitive.removesuffix("*")
    present, imperfect, future, fr_participle = french_forms(infinitive)
    takes = tuple(complement.split()) if complement != "." else ()
    return Verb(
        *(
            base,
            third,
            past,
            participle,
            ing,
            particle,
            infinitive,
            present,
            imperfect,
            future,
            fr_participle,
        ),
        *(takes_etre, is_reflexive, preposition, takes, adjunct, topic),
    )


NOUNS = tuple(
    _parse_noun(entry, line.partition(": ")[0])
    for line in table_lines(_NOUNS)
    for entry in line.partition(": ")[2].split(", ")
)
ADJECTIVES = tuple(_parse_adjective(line) for line in table_lines(_ADJECTIVES))
VERBS = tuple(_parse_verb(line) for line in table_lines(_VERBS))
NOUNS_BY_KIND: dict[str, tuple[Noun, ...]] = {
    kind: tuple(n for n in NOUNS if n.kind == kind) for kind in dict.fromkeys(n.kind for n in NOUNS)
}
